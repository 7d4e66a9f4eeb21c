def error():
    return 1


def run():
    try:
        raise OSError("x")
    except OSError as problem:
        str(problem)
    return error()


run()
