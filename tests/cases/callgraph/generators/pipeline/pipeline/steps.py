def transform(items):
    for item in items:
        item.clean()
        yield item
