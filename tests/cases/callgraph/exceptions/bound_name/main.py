class Failure(Exception):
    def explain(self):
        return "because"


def work():
    raise Failure


def run():
    try:
        work()
    except Failure as failure:
        return failure.explain()


run()
