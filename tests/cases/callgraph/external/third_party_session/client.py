import requests


class Client:
    def __init__(self):
        self.session = requests.Session()

    def load(self, url):
        return self.session.get(url)
