def convert(text):
    number = int(text)
    return str(number), float(number), dict(a=number), range(number)


convert("3")
