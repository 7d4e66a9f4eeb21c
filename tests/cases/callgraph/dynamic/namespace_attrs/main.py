from types import SimpleNamespace


def load():
    return 1


def save():
    return 2


api = SimpleNamespace(load=load)
api.save = save


def run(ns):
    ns.load()
    ns.save()


run(api)
