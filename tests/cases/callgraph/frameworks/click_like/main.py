import click

from tools import build_all


@click.group()
def cli():
    setup()


@cli.command()
@click.option("--fast", is_flag=True)
def build(fast):
    build_all(fast)


def setup():
    return None


if __name__ == "__main__":
    cli()
