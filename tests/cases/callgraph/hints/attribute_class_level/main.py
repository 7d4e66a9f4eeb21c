class Engine:
    def start(self):
        return 1


class Car:
    engine: Engine
    spare: "Engine | None" = None

    def drive(self):
        self.engine.start()
        if self.spare:
            self.spare.start()
