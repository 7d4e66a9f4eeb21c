def debug():
    return 1


def info():
    return 2


LEVELS = {"debug": debug, "info": info}
