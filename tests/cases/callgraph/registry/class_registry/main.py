import codecs_impl
from registry import lookup


def write(kind, value):
    return lookup(kind).encode(value)


write("json", 1)
write("text", 2)
