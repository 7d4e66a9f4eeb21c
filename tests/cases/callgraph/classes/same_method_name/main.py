class Reader:
    def close(self):
        return self.flush()

    def flush(self):
        return 1


class Writer:
    def close(self):
        return self.flush()

    def flush(self):
        return 2


def shut():
    reader = Reader()
    reader.close()


shut()
