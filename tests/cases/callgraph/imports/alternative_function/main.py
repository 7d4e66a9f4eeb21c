try:
    from missing_library import encode
except ImportError:

    def encode(text):
        return text


def use():
    return encode("x")


use()
