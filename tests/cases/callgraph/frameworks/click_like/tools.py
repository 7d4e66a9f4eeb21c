def build_all(fast):
    return fast
