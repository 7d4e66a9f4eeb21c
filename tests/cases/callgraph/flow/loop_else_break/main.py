class Found:
    def use(self):
        return 1


class Default:
    def use(self):
        return 2


def search(items):
    for item in items:
        if item:
            result = Found()
            break
    else:
        result = Default()
    return result.use()


search([1])
search([])
