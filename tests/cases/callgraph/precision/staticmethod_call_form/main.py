def helper():
    return 1


def maker(cls):
    return cls()


class Tool:
    run = staticmethod(helper)
    make = classmethod(maker)

    def go(self):
        return self.run()


Tool.make().go()
