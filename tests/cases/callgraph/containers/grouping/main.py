class Job:
    def __init__(self, kind):
        self.kind = kind

    def run(self):
        return self.kind


def group(jobs):
    groups = {}
    for job in jobs:
        groups.setdefault(job.kind, []).append(job)
    return groups


def main():
    groups = group([Job("a"), Job("b")])
    for kind, jobs in sorted(groups.items()):
        for job in jobs:
            job.run()
    any(job.run() for jobs in groups.values() for job in jobs)
    first = next(iter(groups.values()))
    first[0].run()


main()
