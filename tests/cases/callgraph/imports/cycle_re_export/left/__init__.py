from left.impl import work
from right import back
