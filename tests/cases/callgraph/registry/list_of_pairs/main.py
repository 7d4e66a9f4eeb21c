def is_digit(c):
    return c.isdigit()


def is_space(c):
    return c.isspace()


def number(c):
    return int(c)


def blank(c):
    return None


RULES = [(is_digit, number), (is_space, blank)]


def tokenize(text):
    out = []
    for char in text:
        for test, make in RULES:
            if test(char):
                out.append(make(char))
                break
    return out


tokenize("1 2")
