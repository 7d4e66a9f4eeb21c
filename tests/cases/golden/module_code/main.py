"""The module's own text."""

__version__ = "1"
if __name__ == "__main__":
    print(__file__, __doc__)
