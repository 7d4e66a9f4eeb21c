class Timer:
    def __init__(self):
        self.callback = None

    def every(self, callback):
        self.callback = callback

    def fire(self):
        if self.callback is not None:
            self.callback()


def watch(timer, target):
    def tick():
        target.refresh()

    timer.every(tick)


class Screen:
    def refresh(self):
        return 1


timer = Timer()
watch(timer, Screen())
timer.fire()
