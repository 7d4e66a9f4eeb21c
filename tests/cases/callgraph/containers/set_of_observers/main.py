class Subject:
    def __init__(self):
        self._observers = set()

    def attach(self, observer):
        self._observers.add(observer)
        return lambda: self._observers.discard(observer)

    def notify(self):
        for observer in frozenset(self._observers):
            observer.update(self)


class Screen:
    def update(self, subject):
        return subject


subject = Subject()
detach = subject.attach(Screen())
subject.notify()
detach()
