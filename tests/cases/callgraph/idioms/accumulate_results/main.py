class Hit:
    def __init__(self, score):
        self.score = score

    def show(self):
        return self.score


def search(words):
    hits = []
    for n, word in enumerate(words):
        hits.append((n, Hit(n)))
    hits.sort(key=lambda pair: pair[0], reverse=True)
    return hits[:2]


def main():
    for score, hit in search("abc"):
        hit.show()
    best = max(search("ab"), key=lambda pair: pair[1].show())
    best[1].show()
    scores, hits = zip(*search("a"))
    hits[0].show()


main()
