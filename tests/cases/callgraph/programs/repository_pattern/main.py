from adapters import Memory
from service import Checkout

Checkout(Memory()).run("a", 3)
