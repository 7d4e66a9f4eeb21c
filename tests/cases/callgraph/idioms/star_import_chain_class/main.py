from facade import *

Square().area()
make()
