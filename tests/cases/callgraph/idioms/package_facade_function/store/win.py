class WinStore:
    def read(self, key):
        return key.upper()


def open_store():
    return WinStore()
