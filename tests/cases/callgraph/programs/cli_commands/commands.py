from cli import main


@main.command()
def build(target):
    return compile_all(target)


@main.command("clean-up")
def clean():
    return None


def compile_all(target):
    return target
