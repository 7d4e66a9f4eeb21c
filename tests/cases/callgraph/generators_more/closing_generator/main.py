def cleanup():
    return 1


def numbers(n):
    try:
        for i in range(n):
            yield i
    finally:
        cleanup()


def first():
    for number in numbers(3):
        return number


first()
