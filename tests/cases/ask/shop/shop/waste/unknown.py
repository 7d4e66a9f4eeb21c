"""What cannot be resolved, and why."""

from shop.waste.bins import not_there


def guess(thing):
    def deeper():
        return thing.unheard_of

    thing.whisper().murmur()
    return deeper


class Mystery(guess(1)):
    size = (5)()
