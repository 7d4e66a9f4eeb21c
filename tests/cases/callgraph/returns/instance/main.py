class User:
    def name(self):
        return "ada"


def current_user():
    return User()


current_user().name()
