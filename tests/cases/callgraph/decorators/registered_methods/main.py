class App:
    def __init__(self):
        self.routes = {}

    def route(self, path):
        def add(view):
            self.routes[path] = view
            return view

        return add

    def handle(self, path):
        return self.routes[path]()


app = App()


@app.route("/")
def index():
    return "index"


app.handle("/")
