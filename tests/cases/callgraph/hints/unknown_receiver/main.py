class Thing:
    def run(self):
        return 1

    def close(self):
        return 2


def use(x, y=None, *rest, **options):
    x.run()
    y.close()
    for item in rest:
        item.run()
    options["thing"].close()


def later(callback):
    return callback()()
