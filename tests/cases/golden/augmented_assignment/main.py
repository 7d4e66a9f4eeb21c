total = 0


def add(n):
    global total
    total += n
    return total


data = {"k": [1]}
data["k"] += [2]
data["k"][0] **= 3
