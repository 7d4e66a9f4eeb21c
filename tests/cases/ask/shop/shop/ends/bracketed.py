from typing import TYPE_CHECKING

if (TYPE_CHECKING):
    import shop.ends.bracketed_back
