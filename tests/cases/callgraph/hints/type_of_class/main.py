class Form:
    def __init__(self, data):
        self.data = data

    def valid(self):
        return True


def submit(form_class: type[Form], data):
    form = form_class(data)
    return form.valid()
