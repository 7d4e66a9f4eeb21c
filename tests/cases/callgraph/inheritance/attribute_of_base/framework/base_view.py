from framework.render import Renderer


class View:
    def __init__(self):
        self.renderer = Renderer()
