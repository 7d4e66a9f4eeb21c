import typing

if  typing.TYPE_CHECKING:
    import shop.ends.blanks_back
