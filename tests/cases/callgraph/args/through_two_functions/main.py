def work():
    return 1


def inner(task):
    return task()


def outer(job):
    return inner(job)


outer(work)
