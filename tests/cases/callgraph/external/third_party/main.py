import numpy as np
import requests
from rich.console import Console


def fetch(url):
    requests.get(url)
    Console().print("done")
    return np.array([1])


fetch("x")
