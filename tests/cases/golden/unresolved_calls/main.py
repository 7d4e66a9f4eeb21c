def run(thing, name):
    thing.go()
    getattr(thing, name)()
    undefined(name)
    (lambda: thing)()()
