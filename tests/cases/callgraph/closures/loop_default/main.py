def red():
    return 1


def blue():
    return 2


actions = []
for color in (red, blue):
    actions.append(lambda paint=color: paint())

for action in actions:
    action()
