class retry:
    def __init__(self, times, on=None):
        self.times = times
        self.on = on

    def __call__(self, function):
        def again(*args, **kwargs):
            for _ in range(self.times):
                try:
                    return function(*args, **kwargs)
                except ValueError as error:
                    if self.on:
                        self.on(error)
            return None

        return again


def report(error):
    return str(error)


@retry(2, on=report)
def parse(text):
    return int(text)


parse("x")
