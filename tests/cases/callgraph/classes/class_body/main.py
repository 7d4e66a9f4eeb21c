def version():
    return 1


class Settings:
    number = version()


def make():
    class Inner:
        number = version()

    return Inner


make()
