class Root:
    def save(self):
        return 1


class Middle(Root):
    pass


class Leaf(Middle):
    def save(self):
        return super().save()


Leaf().save()
