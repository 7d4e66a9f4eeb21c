def tag(name):
    def deco(function):
        def wrapped(text):
            return "<" + name + ">" + function(text)

        return wrapped

    return deco


def strip(function):
    def stripped(text):
        return function(text.strip())

    return stripped


@tag("b")
@tag("i")
@strip
def content(text):
    return text


content(" x ")
