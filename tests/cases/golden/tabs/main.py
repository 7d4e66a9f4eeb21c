def f(a):
	if	a:
		return	a
	return "	"	# tab inside
