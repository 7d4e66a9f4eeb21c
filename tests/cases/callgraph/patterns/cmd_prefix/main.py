class Shell:
    def onecmd(self, line):
        word, _, rest = line.partition(" ")
        function = getattr(self, "do_" + word, None)
        if function is None:
            return self.default(line)
        return function(rest)

    def default(self, line):
        return line


class MyShell(Shell):
    def do_list(self, rest):
        return 1

    def do_quit(self, rest):
        return 2

    def helper(self):
        return 3


shell = MyShell()
for line in ("list a", "quit", "zz"):
    shell.onecmd(line)
