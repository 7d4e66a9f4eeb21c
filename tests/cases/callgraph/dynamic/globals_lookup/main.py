def run_fast():
    return 1


def go():
    return globals()["run_fast"]()


go()
