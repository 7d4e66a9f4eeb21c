def base(flag):
    class Base:
        def run(self):
            return self.step()

        def step(self):
            return flag

    return Base


class Job(base(True)):
    def step(self):
        return super().step()


Job().run()
