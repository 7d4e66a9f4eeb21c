def fast():
    return 1


def slow():
    return 2


def cleanup():
    return 3


def pick(flag):
    try:
        if flag:
            raise KeyError(flag)
        run = fast
    except KeyError:
        run = slow
    finally:
        cleanup()
    return run()


pick(True)
pick(False)
