import typing

if not typing.TYPE_CHECKING:
    import shop.ends.negated_back
