class Base:
    def __setup(self):
        return "base"

    def boot(self):
        return self.__setup()


class Child(Base):
    def __setup(self):
        return "child"

    def reboot(self):
        return self.__setup()


Child().boot()
Child().reboot()
