pair = (1, (2, 3))
a, (b, c) = pair
head, *rest = [1, 2, 3]
*start, last = "xyz"
[left, right] = rest
together = [*start, *rest]
merged = {**{"a": a}, "b": b}
