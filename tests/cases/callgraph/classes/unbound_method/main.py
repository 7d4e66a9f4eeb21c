class Door:
    def open(self):
        return self.creak()

    def creak(self):
        return 1


door = Door()
Door.open(door)
