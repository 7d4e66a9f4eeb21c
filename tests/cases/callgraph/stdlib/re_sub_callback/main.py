import re


def upper(match):
    return match.group().upper()


def shout(text):
    return re.sub("a", upper, text)


PATTERN = re.compile("b")


def shout_b(text):
    return PATTERN.sub(lambda m: "B", text)


shout("banana")
shout_b("banana")
