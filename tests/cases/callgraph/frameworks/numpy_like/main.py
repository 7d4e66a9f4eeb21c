import numpy as np
import pandas as pd
from numpy import linalg as la


def solve(a, b):
    x = np.array(a)
    np.linalg.inv(x)
    la.norm(x)
    return np.random.default_rng(1)


class Frame(pd.DataFrame):
    def clean(self):
        return self.dropna()
