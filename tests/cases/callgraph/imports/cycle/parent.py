import child


class Parent:
    def grow(self):
        return child.Child(self).play()

    def rest(self):
        return 1
