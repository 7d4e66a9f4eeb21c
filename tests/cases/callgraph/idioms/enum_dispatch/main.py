import enum


class State(enum.Enum):
    IDLE = enum.auto()
    BUSY = enum.auto()


def idle(machine):
    machine.state = State.BUSY


def busy(machine):
    machine.state = State.IDLE


HANDLERS = {State.IDLE: idle, State.BUSY: busy}


class Machine:
    state = State.IDLE

    def step(self):
        HANDLERS[self.state](self)


machine = Machine()
machine.step()
machine.step()
