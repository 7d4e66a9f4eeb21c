import argparse

import click
import typer
from setuptools import Command

program = typer.Typer()


def check_name(context, parameter, value):  # callback --name click
    return value


@click.group()
@click.option("--name", callback=check_name)
def group(name):  # command group click
    pass


@group.command("say")
def say():  # command say click
    pass


@click.command()
def single():  # command single click
    pass


commands = click.Group()


@commands.result_callback()
def after(result):  # callback after click
    pass


@program.command()
def play():  # command play typer
    pass


def only():  # command only typer
    pass


def handle(args):  # command handle argparse
    pass


def handle_more(args):  # command handle_more argparse
    pass


def positive(text):  # callback --count argparse
    return int(text)


class Stop(argparse.Action):  # callback --stop argparse
    pass


parser = argparse.ArgumentParser()
parser.add_argument("--count", type=positive)
parser.add_argument("--stop", action=Stop)
parser.set_defaults(func=handle)


def add_more(some_parser):
    some_parser.set_defaults(func=handle_more)


class Build(Command):
    def run(self):  # command run setuptools
        pass


def serve():  # command serve console_scripts
    pass


def main():  # main site/commands.py python
    typer.run(only)


if __name__ == "__main__":
    main()
