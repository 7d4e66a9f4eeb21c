def pick(flag, first, second=None):
    call = first if flag else second
    return call() if call is not None else 0
