def len(x):
    return 0


def work(len):
    return len


print(len([]), work(1))
for print in ():
    pass
list = list
