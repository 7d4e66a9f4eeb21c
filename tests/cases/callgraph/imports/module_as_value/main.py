import english
import french


def greet(language):
    return language.hello()


greet(english)
greet(french)
