REGISTRY = []


def plugin(cls):
    REGISTRY.append(cls)
    return cls
