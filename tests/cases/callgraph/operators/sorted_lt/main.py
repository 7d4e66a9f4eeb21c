class Card:
    def __init__(self, rank):
        self.rank = rank

    def __lt__(self, other):
        return self.rank < other.rank


def order(cards):
    return sorted(cards)


def lowest(cards):
    return min(cards)


def in_place(cards):
    cards.sort()


cards = [Card(2), Card(1)]
order(cards)
lowest(cards)
in_place(cards)
