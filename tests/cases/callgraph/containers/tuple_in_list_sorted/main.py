def low():
    return 1


def high():
    return 2


class Scheduler:
    def __init__(self):
        self.jobs = []

    def add(self, priority, job):
        self.jobs.append((priority, job))

    def run(self):
        for _, job in sorted(self.jobs, key=lambda pair: pair[0]):
            job()


scheduler = Scheduler()
scheduler.add(2, low)
scheduler.add(1, high)
scheduler.run()
