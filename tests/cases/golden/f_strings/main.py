name, width = "x", 10
plain = f"hello {name}"
formatted = f"{name!r:>{width}} {width:.2f} {{literal}}"
debug = f"{width * 2 = }"
joined = "a" f"{name.upper()}" "b"
