from django.views import View

from helpers import load


class Page(View):
    def get(self, request):
        self.prepare()
        self.http_method_not_allowed(request)
        return super().dispatch(request)

    def prepare(self):
        return load()
