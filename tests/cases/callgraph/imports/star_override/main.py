from first import *
from second import *

run()
only_first()
