try:
    import fast_impl as impl
except ImportError:
    import slow_impl as impl

if impl:
    from slow_impl import work
else:
    from fast_impl import work


def lazy():
    import slow_impl

    return slow_impl.work()


impl.work()
work()
