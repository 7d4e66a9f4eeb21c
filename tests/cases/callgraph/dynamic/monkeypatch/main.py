import lib


def fake(self):
    return "fake"


original = lib.Client.connect
lib.Client.connect = fake
lib.Client().send()
lib.Client.connect = original
lib.Client().send()
