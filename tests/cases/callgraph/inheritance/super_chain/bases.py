class Root:
    def close(self):
        return 1


class Middle(Root):
    def close(self):
        return super().close()
