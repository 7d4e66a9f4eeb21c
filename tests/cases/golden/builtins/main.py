values = sorted(map(str, range(3)))
print(len(values), isinstance(values, list))
" ".join(values).upper()
super
