class Lower:
    def __call__(self, text):
        return text.lower()


class Cut:
    def __init__(self, n):
        self.n = n

    def __call__(self, text):
        return self._cut(text)

    def _cut(self, text):
        return text[: self.n]


def strip(text):
    return text.strip()


def run(steps, text):
    for step in steps:
        text = step(text)
    return text


run([Lower(), Cut(3), strip], " ABC ")
