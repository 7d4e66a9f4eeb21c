import argparse


def add(args):
    return args.x


def build():
    parser = argparse.ArgumentParser(prog="p")
    parser.add_argument("-x")
    parser.set_defaults(func=add)
    return parser


def main(argv):
    args = build().parse_args(argv)
    return add(args)


main(["-x", "1"])
