class Item:
    def validate(self):
        return True
