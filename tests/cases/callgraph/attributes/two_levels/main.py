class Disk:
    def read(self):
        return 1


class Computer:
    def __init__(self):
        self.disk = Disk()


class Office:
    def __init__(self):
        self.computer = Computer()

    def work(self):
        return self.computer.disk.read()


Office().work()
