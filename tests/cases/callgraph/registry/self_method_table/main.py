class Robot:
    def __init__(self):
        self.moves = {
            "left": self.left,
            "right": self.right,
            "home": lambda: self.go(0, 0),
        }

    def left(self):
        return self.go(-1, 0)

    def right(self):
        return self.go(1, 0)

    def go(self, x, y):
        return (x, y)

    def do(self, words):
        for word in words:
            move = self.moves.get(word)
            if move:
                move()


Robot().do(["left", "right", "home"])
