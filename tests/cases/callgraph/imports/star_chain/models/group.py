class Group:
    def save(self):
        return 1
