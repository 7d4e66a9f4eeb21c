def shout(text: str) -> str:
    return text.upper()


def first(names: list[str]) -> str:
    return names.pop()
