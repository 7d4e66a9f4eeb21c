from .public import run
