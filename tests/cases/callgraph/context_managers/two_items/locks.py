class Read:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def touch(self):
        return 1


class Write:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None
