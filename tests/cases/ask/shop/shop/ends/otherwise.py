import sys
from typing import TYPE_CHECKING

if sys.platform == "none":
    LIMIT = 1
elif TYPE_CHECKING:
    import shop.ends.otherwise_back
