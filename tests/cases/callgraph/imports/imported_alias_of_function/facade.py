import engine

begin = engine.start
