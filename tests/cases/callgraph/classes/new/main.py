class Single:
    only = None

    def __new__(cls):
        if cls.only is None:
            cls.only = super().__new__(cls)
        return cls.only

    def __init__(self):
        self.ready = True

    def work(self):
        return 1


Single().work()
