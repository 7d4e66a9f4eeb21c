class Bus:
    def __init__(self):
        self.listeners = []

    def subscribe(self, listener):
        self.listeners.append(listener)

    def publish(self):
        for listener in self.listeners:
            listener()


def heard():
    return 1


bus = Bus()
bus.subscribe(heard)
bus.publish()
