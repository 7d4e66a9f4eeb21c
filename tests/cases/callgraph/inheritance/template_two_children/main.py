class Importer:
    def load(self):
        return self.parse()

    def parse(self):
        raise NotImplementedError


class Csv(Importer):
    def parse(self):
        return 1


class Xml(Importer):
    def parse(self):
        return 2


for importer in (Csv(), Xml()):
    importer.load()
