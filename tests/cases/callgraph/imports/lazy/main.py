def heavy():
    from backend import compute

    return compute()


def compute():
    return 0


heavy()
compute()
