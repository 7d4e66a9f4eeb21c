from setuptools import setup

setup(name="site", entry_points={"console_scripts": ["serve = site.commands:serve"]})
