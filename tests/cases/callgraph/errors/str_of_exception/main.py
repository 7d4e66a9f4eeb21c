class Bad(Exception):
    def __str__(self):
        return self.text()

    def text(self):
        return "bad"


def run():
    try:
        raise Bad
    except Exception as error:
        return str(error) + f"{error}"


run()
