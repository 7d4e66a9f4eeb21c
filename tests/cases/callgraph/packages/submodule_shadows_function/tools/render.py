def render(text):
    return escape(text)


def escape(text):
    return text
