from enum import Enum

from physics import pull


class Planet(Enum):
    EARTH = (1.0, 2.0)
    MARS = (0.1, 0.5)

    def __init__(self, mass, radius):
        self.weight = pull(mass, radius)


Planet.EARTH.weight
