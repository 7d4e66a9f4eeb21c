class Outer:
    class Inner:
        def __init__(self):
            self.ready = True

        def run(self):
            return 1

    def make(self):
        return self.Inner()


Outer().make().run()
Outer.Inner().run()
