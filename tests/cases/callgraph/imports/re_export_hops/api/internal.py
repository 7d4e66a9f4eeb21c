from .impl.core import execute
