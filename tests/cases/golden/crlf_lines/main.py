def f(a):
    '''two
    lines'''
    return a + \
        1


f(2)
