def parse():
    return 2
