class Client:
    def __getattr__(self, name):
        def call(*args):
            return self._request(name, args)

        return call

    def _request(self, name, args):
        return name


Client().list_users(1)
