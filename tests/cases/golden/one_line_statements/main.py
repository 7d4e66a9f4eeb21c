import os; x = 1; y = x
if x: y = 2; print(y)
class C: a = 1; b = a
def f(): return x; x
while x: x -= 1
