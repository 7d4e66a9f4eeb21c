import os

import paths.path

os.path.join("a", "b")
paths.path.join("a", "b")
