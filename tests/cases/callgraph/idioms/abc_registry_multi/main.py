from exporters import export

export("csv", [["a"]])
export("json", [["b"]])
