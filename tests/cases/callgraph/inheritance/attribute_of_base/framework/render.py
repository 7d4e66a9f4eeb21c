class Renderer:
    def render(self):
        return 1
