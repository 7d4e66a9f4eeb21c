from contextlib import contextmanager


class Pool:
    def __init__(self):
        self.free = [Conn()]

    @contextmanager
    def connection(self):
        conn = self.take()
        try:
            yield conn
        finally:
            self.give(conn)

    def take(self):
        return self.free.pop()

    def give(self, conn):
        self.free.append(conn)


class Conn:
    def send(self, text):
        return text


def main():
    pool = Pool()
    with pool.connection() as conn:
        conn.send("x")


main()
