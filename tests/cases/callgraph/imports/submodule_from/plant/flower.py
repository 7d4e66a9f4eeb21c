def bloom():
    return 2
