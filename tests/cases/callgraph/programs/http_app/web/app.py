from .router import Router


class App:
    def __init__(self, *middleware):
        self.router = Router()
        self.middleware = middleware

    def get(self, path):
        def register(view):
            self.router.add(path, view)
            return view

        return register

    def handle(self, path):
        view = self.router.match(path)
        for wrap in self.middleware:
            view = wrap(view)
        return view({"path": path})
