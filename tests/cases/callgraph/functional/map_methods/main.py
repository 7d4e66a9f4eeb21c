class Person:
    def __init__(self, name):
        self.name = name

    def initial(self):
        return self.name[0]

    def is_adult(self):
        return True


def names(raw):
    people = list(map(Person, raw))
    adults = filter(Person.is_adult, people)
    ordered = sorted(adults, key=lambda p: p.initial())
    return [person.initial() for person in ordered]


names(["a", "b"])
