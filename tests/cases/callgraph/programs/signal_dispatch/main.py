class Signal:
    def __init__(self):
        self.receivers = []

    def connect(self, receiver=None, **options):
        if receiver is None:
            return lambda function: self.connect(function, **options)
        self.receivers.append((options, receiver))
        return receiver

    def send(self, sender, **named):
        return [receiver(sender, **named) for _, receiver in self.receivers]


saved = Signal()


@saved.connect
def log(sender, **named):
    return sender


@saved.connect(weak=False)
def index(sender, item=None, **named):
    return item.key()


class Item:
    def key(self):
        return 1

    def save(self):
        saved.send(self, item=self)


Item().save()
