class Job:
    def run(self):
        return 1


def all_jobs(count):
    return [Job() for _ in range(count)]


for job in all_jobs(2):
    job.run()
