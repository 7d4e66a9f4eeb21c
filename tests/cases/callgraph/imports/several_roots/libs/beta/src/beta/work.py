from alpha import begin


def work():
    return begin()
