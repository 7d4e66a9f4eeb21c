_client = None


class Client:
    def get(self, key):
        return self._send(key)

    def _send(self, key):
        return key


def client():
    global _client
    if _client is None:
        _client = Client()
    return _client


def fetch(key):
    return client().get(key)


fetch("a")
