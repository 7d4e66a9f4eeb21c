class Job:
    def __init__(self, action, on_error=None):
        self.action = action
        self.on_error = on_error

    def run(self):
        try:
            return self.action()
        except ValueError as error:
            return self.on_error(error)


def fail():
    raise ValueError("x")


def report(error):
    return error


config = {"action": fail, "on_error": report}
Job(**config).run()
