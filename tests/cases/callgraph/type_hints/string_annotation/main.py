def close(door: "Door"):
    return door.shut()


class Door:
    def shut(self):
        return 1
