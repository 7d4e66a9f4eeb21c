COMMANDS = {}


def command(name):
    def add(function):
        COMMANDS[name] = function
        return function

    return add


@command("start")
def start(args):
    return prepare(args)


@command("stop")
def stop(args):
    return None


def prepare(args):
    return args


def dispatch(line):
    name, *rest = line.split()
    handler = COMMANDS.get(name)
    if handler is None:
        return unknown(name)
    return handler(rest)


def unknown(name):
    return name


for line in ("start a", "stop", "jump"):
    dispatch(line)
