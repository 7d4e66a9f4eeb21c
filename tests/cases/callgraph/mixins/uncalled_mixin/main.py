class Saver:
    def save(self):
        return self.path()


class Doc(Saver):
    def path(self):
        return "doc"


class Image(Saver):
    def path(self):
        return "image"
