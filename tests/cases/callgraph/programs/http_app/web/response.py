class HttpResponse:
    status = 200

    def __init__(self, body):
        self.body = self.render(body)

    def render(self, body):
        return body


class JsonResponse(HttpResponse):
    def render(self, body):
        return dumps(body)


def dumps(body):
    return "json"
