class Match:
    def group(self):
        return "g"


def find(text):
    if text:
        return Match()
    return None


def scan(texts):
    if (m := find("x")) is not None:
        m.group()
    while n := find(""):
        n.group()
    return [hit.group() for text in texts if (hit := find(text))]


scan(["a", ""])
