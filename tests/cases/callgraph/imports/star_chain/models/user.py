class User:
    def save(self):
        return 2
