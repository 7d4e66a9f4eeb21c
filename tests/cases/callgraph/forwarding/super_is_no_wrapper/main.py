class Base:
    def __init__(self, name):
        self.name = name

    def save(self, *args, **kwargs): ...


class Child(Base):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)

    def save(self, *args, **kwargs):
        super().save(*args, **kwargs)


def helper(*args, **kwargs):
    return Child(*args, **kwargs)


def main():
    helper("x").save()


main()
