def dump(value):
    return "json"
