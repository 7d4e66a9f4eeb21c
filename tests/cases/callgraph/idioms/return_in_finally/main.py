class Res:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        return None

    def data(self):
        return Data()


class Data:
    def rows(self):
        return [1]


def open_res():
    with Res() as res:
        for _ in range(3):
            try:
                return res.data()
            finally:
                log()


def log():
    return 1


open_res().rows()
