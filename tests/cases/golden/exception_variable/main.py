def guarded(work):
    error = None
    try:
        work()
    except ValueError as error:
        print(error)
    return error
