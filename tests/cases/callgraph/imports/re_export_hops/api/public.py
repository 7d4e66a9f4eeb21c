from .internal import execute as run
