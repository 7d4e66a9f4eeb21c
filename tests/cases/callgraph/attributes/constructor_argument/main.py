class Log:
    def write(self):
        return 1


class Service:
    def __init__(self, log):
        self.log = log

    def serve(self):
        return self.log.write()


service = Service(Log())
service.serve()
