def handler(request):
    return request


def logging(next_):
    def call(request):
        return next_(request)

    return call


def auth(next_):
    def check(request):
        return next_(request)

    return check


def build(middlewares, app):
    for middleware in reversed(middlewares):
        app = middleware(app)
    return app


build([logging, auth], handler)("r")
