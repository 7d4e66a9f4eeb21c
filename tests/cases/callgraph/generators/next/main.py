class Ticket:
    def use(self):
        return 1


def tickets():
    yield Ticket()


next(tickets()).use()
