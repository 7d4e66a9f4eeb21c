class Router:
    def __init__(self):
        self._routes = []

    def add(self, pattern, view):
        self._routes.append((pattern, view))

    def match(self, path):
        for pattern, view in self._routes:
            if path.startswith(pattern):
                return view
        return self.not_found

    def not_found(self, request):
        from . import HttpResponse

        return HttpResponse("404")
