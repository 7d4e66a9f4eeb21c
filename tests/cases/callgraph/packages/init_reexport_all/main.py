from kit import *

open_box()
Lid().close()
