_CODECS = {}


def codec(*names):
    def register(cls):
        for name in names:
            _CODECS[name] = cls
        return cls

    return register


def lookup(name):
    return _CODECS[name]()
