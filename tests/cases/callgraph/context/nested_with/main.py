class Session:
    def query(self):
        return []


class Db:
    def __init__(self):
        self.session = None

    def __enter__(self):
        self.session = self.open()
        return self.session

    def __exit__(self, *exc):
        self.close()
        return False

    def open(self):
        return Session()

    def close(self):
        pass


class Lock:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.release()

    def release(self):
        pass


def work():
    with Lock() as lock, Db() as session:
        session.query()
        with lock:
            session.query()


work()
