def save(item):
    return item.validate()
