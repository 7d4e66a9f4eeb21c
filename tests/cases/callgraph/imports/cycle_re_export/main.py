from left import work

work()
