def one():
    return 1


def two():
    return 2


def build():
    made = []
    for function in (one, two):

        def call():
            return function()

        made.append(call)
    return made


for call in build():
    call()
