def area():
    return 1
