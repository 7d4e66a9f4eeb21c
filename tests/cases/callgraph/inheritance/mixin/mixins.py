class Loud:
    def shout(self):
        return self.sound()
