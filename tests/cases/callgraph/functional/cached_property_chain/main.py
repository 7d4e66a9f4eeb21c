from functools import cached_property


class Client:
    def ping(self):
        return 1


class App:
    @cached_property
    def client(self):
        return self._connect()

    def _connect(self):
        return Client()

    def run(self):
        return self.client.ping()


App().run()
