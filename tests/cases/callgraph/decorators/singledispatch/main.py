from functools import singledispatch


@singledispatch
def show(value):
    return "?"


@show.register
def _(value: int):
    return number(value)


@show.register(str)
def show_text(value):
    return value


def number(value):
    return value


show(1)
show("a")
show(None)
