from typing import NamedTuple


class Lamp:
    def on(self):
        return 1


class Room(NamedTuple):
    lamp: Lamp
    number: int

    def enter(self):
        return self.lamp.on()


Room(Lamp(), 7).enter()
