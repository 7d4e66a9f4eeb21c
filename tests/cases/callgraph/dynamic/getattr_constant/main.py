class Robot:
    def walk(self):
        return 1

    def talk(self):
        return 2


robot = Robot()
getattr(robot, "walk")()
