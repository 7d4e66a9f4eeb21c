def target(action, then):
    action()
    then()


def forward(*args, **kwargs):
    return target(*args, **kwargs)


def go():
    return 1


def stop():
    return 2


forward(go, then=stop)
