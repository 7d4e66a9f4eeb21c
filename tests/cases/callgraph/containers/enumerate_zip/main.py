def f(n):
    return n


def g(n):
    return n


for index, action in enumerate([f]):
    action(index)
for action, number in zip([g], [1]):
    action(number)
