class Team:
    def __contains__(self, name):
        return True

    def __len__(self):
        return 2


def check(team):
    return "ada" in team and len(team)


check(Team())
