def view_of(model, render):
    class View:
        def __init__(self):
            self.model = model()

        def show(self):
            return render(self.model.name())

    return View


class User:
    def name(self):
        return "u"


def bold(text):
    return "*" + text


view = view_of(User, bold)()
view.show()
