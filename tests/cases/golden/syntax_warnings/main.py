pattern = "\d"
if pattern is "x":
    assert (pattern, "always true")
1("not callable")
