def countdown(n):
    while n:
        if n == 13:
            break
        if n % 2:
            n -= 3
            continue
        n -= 1
    else:
        return "done"
    return n
