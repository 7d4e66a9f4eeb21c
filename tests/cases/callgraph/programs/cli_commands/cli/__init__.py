from .core import Group

main = Group("main")
