from files import FileResource


class TempFile(FileResource):
    def probe(self):
        return FileResource.probe(self)


TempFile("t")
