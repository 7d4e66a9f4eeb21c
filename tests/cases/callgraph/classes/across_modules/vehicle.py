class Car:
    def __init__(self, plate):
        self.plate = plate

    def stop(self):
        return self.brake()

    def brake(self):
        return 0
