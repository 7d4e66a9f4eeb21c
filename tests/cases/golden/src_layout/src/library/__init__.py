from library.core import Engine
