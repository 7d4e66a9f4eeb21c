def build():
    class Local:
        def __init__(self):
            self.setup()

        def setup(self):
            return 1

    return Local()


build().setup()
