"""Methods of what an attribute holds: `self.attribute.method()`."""


class Engine:
    def ignite(self):
        """0.3: Truck calls it, if its engine is one; nobody says what it is."""

    def _cool_down(self):
        """0.9."""


class Motor:
    def spin(self):
        """Used by Lorry."""


class Truck:
    def __init__(self, engine):
        self.engine = engine

    def drive(self):
        return self.engine.ignite()


class Lorry:
    def __init__(self):
        self.motor = Motor()

    def drive(self):
        return self.motor.spin()


class Trailer:
    def couple(self):
        """Used below."""


class Sledge:
    def couple(self):
        """0.3: what is hitched may be more than we know."""


def hitch(load):
    return load.couple()


FLEET = [Truck, Lorry, Engine, Sledge]
DRIVEN = [vehicle.drive() for vehicle in (Truck(None), Lorry())]
HITCHED = hitch(Trailer())
