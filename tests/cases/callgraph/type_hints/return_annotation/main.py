from typing import Any


class Config:
    def read(self) -> str:
        return "x"


def load(store: dict[str, Any]) -> Config:
    return store["config"]


def use(store):
    return load(store).read()
