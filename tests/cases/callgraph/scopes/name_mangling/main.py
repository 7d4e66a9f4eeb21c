class Base:
    def __secret(self):
        return 1

    def base_run(self):
        return self.__secret()


class Child(Base):
    def __secret(self):
        return 2

    def child_run(self):
        return self.__secret()


child = Child()
child.base_run()
child.child_run()
