import sys


def main(argv=None):
    return run(argv or sys.argv[1:])


def run(argv):
    return 0


if __name__ == "__main__":
    sys.exit(main())
