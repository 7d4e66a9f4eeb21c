from collections import namedtuple

Event = namedtuple("Event", "time action")


def ring():
    return 1


def fire(event):
    event.action()
    time, action = event
    action()
    return event[1]()


fire(Event(1, ring))
fire(Event(time=2, action=ring))
