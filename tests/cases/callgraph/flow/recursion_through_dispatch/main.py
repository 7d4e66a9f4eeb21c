def ev_num(node):
    return node[1]


def ev_add(node):
    return evaluate(node[1]) + evaluate(node[2])


def ev_neg(node):
    return -evaluate(node[1])


TABLE = {"num": ev_num, "add": ev_add, "neg": ev_neg}


def evaluate(node):
    return TABLE[node[0]](node)


evaluate(("add", ("num", 1), ("neg", ("num", 2))))
