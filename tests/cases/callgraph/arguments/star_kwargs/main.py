def on_open():
    return 1


def on_close():
    return 2


def fire(**handlers):
    return handlers["close"]()


fire(open=on_open, close=on_close)
