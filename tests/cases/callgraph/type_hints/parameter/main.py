class Engine:
    def start(self):
        return 1


def ignite(engine: Engine):
    return engine.start()
