def gather(work):
    try:
        work()
    except* ValueError as group:
        print(group.exceptions)
    except* (KeyError, OSError):
        print("other")
