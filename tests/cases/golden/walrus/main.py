def chunks(read):
    while (chunk := read()) is not None:
        print(chunk)
    return chunk


if any((hit := n) > 2 for n in [1, 2, 3]):
    print(hit)
