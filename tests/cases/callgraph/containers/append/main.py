def hook():
    return 1


hooks = []
hooks.append(hook)
for each in hooks:
    each()
