def validate(x):
    return x


def save(x):
    return x


save.before = validate
save.undo = lambda x: None


def run(action, x):
    action.before(x)
    action(x)
    action.undo(x)


run(save, 1)
