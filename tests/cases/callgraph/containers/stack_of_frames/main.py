class Frame:
    def run(self, vm):
        vm.leave()


class Vm:
    def __init__(self):
        self.frames = []

    def enter(self, frame):
        self.frames.append(frame)
        self.top.run(self)

    @property
    def top(self):
        return self.frames[-1]

    def leave(self):
        self.frames.pop()


Vm().enter(Frame())
