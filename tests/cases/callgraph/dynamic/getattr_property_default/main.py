class Context:
    def __init__(self, parent=None):
        self._meta = getattr(parent, "meta", {})

    @property
    def meta(self):
        return self._meta


Context(Context())
