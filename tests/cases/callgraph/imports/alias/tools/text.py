def trim():
    return ""
