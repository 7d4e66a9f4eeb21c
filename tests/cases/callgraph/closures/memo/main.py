def memoize(function):
    seen = {}

    def lookup(key):
        if key not in seen:
            seen[key] = function(key)
        return seen[key]

    lookup.clear = seen.clear
    return lookup


@memoize
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


fib(5)
fib.clear()
