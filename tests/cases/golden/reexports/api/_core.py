class Client: ...


def connect():
    return Client()


def helper(): ...
