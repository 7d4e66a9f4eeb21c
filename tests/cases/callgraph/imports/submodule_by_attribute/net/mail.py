def send():
    return 2
