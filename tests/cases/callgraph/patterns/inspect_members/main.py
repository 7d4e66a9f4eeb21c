import inspect


class Renderer:
    def __init__(self):
        self.rules = {
            name: function
            for name, function in inspect.getmembers(self, predicate=inspect.ismethod)
            if not name.startswith("_")
        }

    def text(self):
        return "t"

    def image(self):
        return "i"

    def _private(self):
        return "p"


def render(renderer, names):
    return [renderer.rules[name]() for name in names]


render(Renderer(), ["text", "image"])
