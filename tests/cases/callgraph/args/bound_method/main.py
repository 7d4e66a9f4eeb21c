class Bell:
    def ring(self):
        return self.sound()

    def sound(self):
        return "ding"


def press(button):
    return button()


bell = Bell()
press(bell.ring)
