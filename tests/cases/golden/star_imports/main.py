from shapes import *
from plain import *
from os.path import *

area()
Square()
visible()
join("a", "b")
hidden()
