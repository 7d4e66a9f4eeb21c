import engine


def stub():
    return "stub"


engine.backend = stub
engine.run()
