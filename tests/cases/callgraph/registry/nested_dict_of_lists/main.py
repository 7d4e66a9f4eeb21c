def first(e):
    return e


def second(e):
    return e


def third(e):
    return e


TABLE = {"mouse": {"click": [first, second], "move": []}, "key": {"down": [third]}}


def fire(device, event, payload):
    for callback in TABLE[device][event]:
        callback(payload)


fire("mouse", "click", 1)
fire("key", "down", 2)
