def size(word):
    return len(word)


def order(words):
    return sorted(words, key=size)


order(["bb", "a"])
