class Repo:
    def save(self, item):
        return item


class Service:
    def __init__(self, repo: Repo):
        self._repo = repo

    def store(self, item):
        return self._repo.save(item)
