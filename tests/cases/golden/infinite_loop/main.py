def serve(step):
    while True:
        step()


def spin():
    while 1:
        pass
    print("never")
