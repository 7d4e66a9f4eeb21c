from store import Store


def on_change(name):
    def react():
        return announce(name)

    return react


def announce(name):
    return name


store = Store()
store.subscribe(on_change("x"))
store.change()
