def start(): ...


def stop(): ...


commands = {"start": start, "stop": stop}
commands["start"]()
for command in commands.values():
    command()
