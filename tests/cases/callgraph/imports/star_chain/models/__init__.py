from .group import *
from .user import *
