from locks import Read, Write


def both():
    with Read() as reader, Write():
        reader.touch()


both()
