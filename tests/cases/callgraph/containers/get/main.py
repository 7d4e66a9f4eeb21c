def known():
    return 1


def other():
    return 2


def unknown():
    return 3


table = {"known": known, "other": other}


def lookup():
    table.get("known")()
    return table.get("missing", unknown)()


lookup()
