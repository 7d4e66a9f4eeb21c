def sign(n):
    if n > 0:
        word = "plus"
    elif n < 0:
        word = "minus"
    else:
        word = "zero"
    return word
