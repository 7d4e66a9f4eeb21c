def low():
    return 1


def high():
    return 2


table = {"low": [low], "high": [high]}
for action in table["high"]:
    action()
