import space.one.part
from space.two import part

space.one.part.f()
part.g()
