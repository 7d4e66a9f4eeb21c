import alpha
from beta.work import work

alpha.begin()
work()
