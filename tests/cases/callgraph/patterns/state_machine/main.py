class Idle:
    def next(self, door):
        door.state = Open()

    def name(self):
        return "idle"


class Open:
    def next(self, door):
        door.state = Closed(door)

    def name(self):
        return "open"


class Closed:
    def __init__(self, door):
        self.door = door

    def next(self, door):
        door.state = Idle()

    def name(self):
        return "closed"


class Door:
    def __init__(self):
        self.state = Idle()

    def push(self):
        self.state.next(self)
        return self.state.name()


door = Door()
for _ in range(4):
    door.push()
