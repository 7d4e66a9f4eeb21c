import tools


def replacement(): ...


tools.work = replacement
tools.work()
