class Pool:
    def submit(self, function, *args, **kwargs):
        return self._run(function, args, kwargs)

    def _run(self, function, args, kwargs):
        return function(*args, **kwargs)


class Mail:
    def send(self, to, after=None):
        if after:
            after(to)


def done(to):
    return to


Pool().submit(Mail().send, "x", after=done)
