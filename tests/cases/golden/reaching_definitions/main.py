def flow(flag, items):
    x = 1
    if flag:
        x = 2
    for x in items:
        y = x
    try:
        y = x + 1
        x = y
    finally:
        print(x)
    return x, y
