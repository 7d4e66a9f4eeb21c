class Shell:
    COMMANDS = {"ls": "do_list", "rm": "do_remove"}

    def execute(self, word):
        name = self.COMMANDS[word]
        return getattr(self, name)()

    def do_list(self):
        return 1

    def do_remove(self):
        return 2

    def do_nothing(self):
        return 3


shell = Shell()
shell.execute("ls")
shell.execute("rm")
