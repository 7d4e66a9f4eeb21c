from wsgi_lib import Handler


class LogMixin:
    def log(self, text):
        return self.fmt(text)

    def fmt(self, text):
        return text


class MyHandler(LogMixin, Handler):
    def handle(self):
        self.log("x")
        return self.finish()
