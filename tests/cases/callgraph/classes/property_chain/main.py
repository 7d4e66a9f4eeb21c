class Street:
    def name(self):
        return "s"


class Address:
    @property
    def street(self):
        return Street()


class Person:
    @property
    def address(self):
        return self._find()

    def _find(self):
        return Address()


class Company:
    def __init__(self, boss):
        self._boss = boss

    @property
    def boss(self):
        return self._boss


Company(Person()).boss.address.street.name()
