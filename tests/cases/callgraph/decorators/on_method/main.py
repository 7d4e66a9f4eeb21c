def checked(method):
    def wrapper(self):
        self.check()
        return method(self)

    return wrapper


class Door:
    def check(self):
        return True

    @checked
    def open(self):
        return 1


Door().open()
