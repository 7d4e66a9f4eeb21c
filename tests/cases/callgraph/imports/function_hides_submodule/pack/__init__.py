from pack.load import load
