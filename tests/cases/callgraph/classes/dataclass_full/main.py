from dataclasses import dataclass, field


def now():
    return 0


@dataclass
class Event:
    name: str
    at: int = field(default_factory=now)

    def __post_init__(self):
        self.key = self.make_key()

    def make_key(self):
        return self.name


@dataclass
class Click(Event):
    target: "Widget" = None

    def make_key(self):
        return self.target.ident()


class Widget:
    def ident(self):
        return "w"


def handle(event: Event):
    return event.make_key()


handle(Event("e"))
handle(Click("c", target=Widget()))
