def collect():
    found = []
    found.append(2)
    found.extend([1])
    found.sort()
    return found.index(2)


collect()
