def early(flag):
    return flag
    print("never")


def always():
    raise SystemExit
    return 1


if False:
    early(1)
