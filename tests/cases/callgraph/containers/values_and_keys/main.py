def key():
    return 1


def value():
    return 2


table = {key: value}


def run_keys():
    for each in table:
        each()


def run_values():
    for each in table.values():
        each()


run_keys()
run_values()
