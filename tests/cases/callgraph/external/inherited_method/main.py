from argparse import ArgumentParser


class Options(ArgumentParser):
    def setup(self):
        self.add_argument("--name")
        self.more()

    def more(self):
        return 1


options = Options()
options.setup()
options.parse_args([])
