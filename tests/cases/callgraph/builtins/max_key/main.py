class Team:
    def __init__(self, points):
        self.points = points


def points(team):
    return team.points


def best(teams):
    return max(teams, key=points)


best([Team(1), Team(2)])
