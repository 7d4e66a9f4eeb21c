try:
    import fancy_missing as fancy
except ImportError:
    fancy = None


def plain(text):
    return text


def render(text):
    if fancy is not None:
        return fancy.render(text)
    return plain(text)


render("x")
