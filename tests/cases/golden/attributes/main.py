class Engine:
    power = 5

    def start(self):
        return self.power


class Car:
    def __init__(self):
        self.engine = Engine()

    def go(self):
        return self.engine.start()


Car().engine.power = 9
