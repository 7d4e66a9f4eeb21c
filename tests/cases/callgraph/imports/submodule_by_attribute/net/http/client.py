def connect():
    return 1
