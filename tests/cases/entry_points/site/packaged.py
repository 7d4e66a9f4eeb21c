"""What `pyproject.toml` and `setup.cfg` declare."""


def report():  # command site-report console_scripts
    pass


def main_program():  # command site console_scripts
    pass


class Window:
    @classmethod
    def open(cls):  # command window gui_scripts
        pass


def audit():  # plugin audit site.plugins
    pass


def table():  # command table console_scripts
    pass


def fixtures():  # plugin fixtures pytest11
    pass


def unnamed():
    pass
