class Engine:
    def start(self):
        return "brum"


def ignite(machine):
    return machine.start()


ignite(Engine())
