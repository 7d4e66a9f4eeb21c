def piston():
    return 1
