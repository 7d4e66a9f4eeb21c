class Score:
    def __init__(self, n):
        self.n = n

    def value(self):
        return self.n

    @staticmethod
    def rank(score):
        return score.value()


def by_value(score):
    return score.value()


def best(scores, key=by_value):
    scores.sort(key=key)
    return max(scores, key=Score.rank), min(scores, key=lambda s: s.n)


best([Score(1), Score(2)])
best([Score(3)], key=Score.value)
