class Task:
    def run(self):
        return 1


class Plan:
    def __iter__(self):
        yield Task()


for task in Plan():
    task.run()
