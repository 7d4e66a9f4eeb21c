def default():
    return 1


class Box:
    def __init__(self):
        self.value = default()


class Empty:
    pass


Box()
Empty()
