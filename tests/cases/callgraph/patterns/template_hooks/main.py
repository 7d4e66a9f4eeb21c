class Task:
    def execute(self):
        self.before()
        try:
            return self.run()
        finally:
            self.after()

    def before(self):
        pass

    def run(self):
        raise NotImplementedError

    def after(self):
        pass


class Timed(Task):
    def before(self):
        self.start = tick()

    def after(self):
        super().after()
        self.end = tick()


class Job(Timed):
    def run(self):
        return 1


def tick():
    return 0


Job().execute()
