def make():
    def made():
        return 1

    return made


def use():
    return make()()


use()
