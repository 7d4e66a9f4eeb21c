from handlers import on_a, on_b

HANDLERS = {"a": on_a, "b": on_b}
