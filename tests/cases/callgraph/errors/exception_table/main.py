class NotFound(Exception):
    def __init__(self, what):
        self.what = what


class Denied(Exception):
    pass


ERRORS = {404: NotFound, 403: Denied}


def check(code):
    error = ERRORS.get(code)
    if error:
        raise error("x")


for code in (200, 403, 404):
    try:
        check(code)
    except (NotFound, Denied):
        pass
