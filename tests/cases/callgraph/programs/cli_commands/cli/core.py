class Command:
    def __init__(self, name, callback):
        self.name = name
        self.callback = callback

    def invoke(self, *args):
        return self.callback(*args)


class Group(Command):
    def __init__(self, name):
        super().__init__(name, self.usage)
        self.commands = {}

    def usage(self):
        return sorted(self.commands)

    def command(self, name=None):
        def decorator(function):
            command = Command(name or function.__name__, function)
            self.commands[command.name] = command
            return command

        return decorator

    def __call__(self, argv):
        if not argv:
            return self.invoke()
        return self.commands[argv[0]].invoke(*argv[1:])
