__all__ = ["first"]
__all__ += ["second"]
__all__.extend(["third", "missing"])


def first(): ...


def second(): ...


third = 3
