class NotFound(LookupError):
    def __init__(self, name):
        self.name = name


def not_found(name):
    return NotFound(name)
