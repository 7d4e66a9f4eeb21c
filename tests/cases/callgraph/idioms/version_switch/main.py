import sys

if sys.version_info >= (3, 0):

    def text(x):
        return str(x)

else:

    def text(x):
        return legacy(x)


def legacy(x):
    return x


text(1)
