class Proxy:
    def known(self):
        return 1

    def __getattr__(self, name):
        return fallback


def fallback():
    return 2


proxy = Proxy()
proxy.known()
proxy.unknown()
