def repeat(times, *, pause=0):
    def decorate(function):
        def wrapper():
            for _ in range(times):
                function()

        return wrapper

    return decorate


@repeat(3, pause=1)
def beep():
    print("beep")


beep()
