from collections import namedtuple


class Task(namedtuple("Task", ["name", "run"])):
    __slots__ = ()

    def execute(self):
        return self.run(self.name)


def work(name):
    return name


Task("a", work).execute()
