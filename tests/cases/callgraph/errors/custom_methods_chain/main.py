class StorageError(Exception):
    def __init__(self, path, code=1):
        super().__init__(path)
        self.path = path
        self.code = code

    def explain(self):
        return self.path

    @classmethod
    def missing(cls, path):
        return cls(path, 404)


class AppError(Exception):
    def __init__(self, cause):
        self.cause = cause

    def root(self):
        return self.cause.explain()


def read(path):
    raise StorageError.missing(path)


def load(path):
    try:
        return read(path)
    except StorageError as error:
        raise AppError(error) from error


try:
    load("x")
except AppError as problem:
    problem.root()
    problem.__cause__.explain()
