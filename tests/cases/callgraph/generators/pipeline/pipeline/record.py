class Record:
    def clean(self):
        return 1

    def save(self):
        return 2
