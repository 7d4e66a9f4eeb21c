def run():
    return 3
