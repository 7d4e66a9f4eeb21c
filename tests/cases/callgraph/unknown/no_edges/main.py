import third_party_thing


def use(a):
    b = a.value
    b.run()
    c = a[0]
    c()
    (lambda: None)()
    for d in a:
        d.run()
    return a + 1


class Other:
    def run(self):
        return 1
