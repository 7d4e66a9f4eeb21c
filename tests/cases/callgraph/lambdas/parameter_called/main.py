def work():
    return 1


run = lambda action: action()
run(work)
