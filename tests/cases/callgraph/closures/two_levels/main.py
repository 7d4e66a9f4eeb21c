def work():
    return 1


def outer(job):
    def middle():
        def inner():
            return job()

        return inner

    return middle


outer(work)()()
