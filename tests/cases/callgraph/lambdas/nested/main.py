def leaf():
    return 1


make = lambda: lambda: leaf()
make()()
