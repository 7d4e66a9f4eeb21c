from runner import execute


def task():
    return 1


execute(task)
