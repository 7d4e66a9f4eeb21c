import engine

engine.start()
