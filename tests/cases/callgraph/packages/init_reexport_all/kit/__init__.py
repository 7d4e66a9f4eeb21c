from ._a import *
from ._b import *

__all__ = _a.__all__ + _b.__all__
