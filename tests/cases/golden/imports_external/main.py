import os.path
import numpy as np
from json import dumps, loads as parse
from missing.package import thing
from . import sibling

os.path.join("a", os.getcwd())
np.array([1]).sum()
dumps(parse("1"))
thing.run()
