def join(*parts):
    return parts
