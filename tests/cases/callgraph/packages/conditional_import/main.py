import os

if os.environ.get("EXAM_USE_B"):
    from backend_b import Client
else:
    from backend_a import Client


def run():
    return Client().call()


run()
