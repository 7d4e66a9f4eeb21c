class Deck:
    def __init__(self, cards):
        self.cards = cards

    def __iter__(self):
        return DeckIterator(self)


class DeckIterator:
    def __init__(self, deck):
        self.deck = deck
        self.i = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= len(self.deck.cards):
            raise StopIteration
        self.i += 1
        return self.deck.cards[self.i - 1]


class Ace:
    def play(self):
        return 1


def game(deck):
    for card in deck:
        card.play()


game(Deck([Ace()]))
