def run(first, second):
    return second()
