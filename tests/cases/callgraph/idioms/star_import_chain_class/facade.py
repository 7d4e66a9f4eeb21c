from base_lib import *


class Square(Shape):
    def size(self):
        return 4
