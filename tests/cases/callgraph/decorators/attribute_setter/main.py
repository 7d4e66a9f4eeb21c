class App:
    def __init__(self):
        self.routes = {}

    def route(self, path, methods=("GET",)):
        def decorator(function):
            self.add(path, function)
            return function

        return decorator

    def add(self, path, function):
        self.routes[path] = function

    def __call__(self, path):
        return self.routes[path]()


app = App()


@app.route("/")
def index():
    return render("index")


@app.route("/about", methods=["GET", "HEAD"])
def about():
    return "about"


def render(name):
    return name


app("/")
app("/about")
