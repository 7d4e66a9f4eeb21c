from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from store import Store


def use(store: "Store"):
    return store.load()


def run():
    from store import Store

    return use(Store())


run()
