from library import Engine


def test_start():
    Engine().start()
