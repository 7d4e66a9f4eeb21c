def hook():
    return ""


def run():
    return hook()
