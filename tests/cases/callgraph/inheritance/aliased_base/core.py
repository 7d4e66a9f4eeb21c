class Base:
    def boot(self):
        return 1
