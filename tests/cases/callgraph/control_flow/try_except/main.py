def risky():
    return 1


def repair():
    return 2


def succeed():
    return 3


def clean():
    return 4


def run():
    try:
        risky()
    except ValueError:
        repair()
    else:
        succeed()
    finally:
        clean()


run()
