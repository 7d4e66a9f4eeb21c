class Missing(Exception):
    def __init__(self, name="x"):
        self.name = name


def called():
    raise Missing("a")


def bare():
    raise Missing


for function in (called, bare):
    try:
        function()
    except Missing:
        pass
