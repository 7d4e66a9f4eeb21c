from pack import load

load()
