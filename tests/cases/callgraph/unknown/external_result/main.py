import requests

from flask import Flask, request

app = Flask(__name__)


@app.route("/")
def index():
    payload = request.get_json()
    answer = requests.post("u", json=payload)
    answer.raise_for_status()
    return answer.json()


class Mine:
    def json(self):
        return 1

    def raise_for_status(self):
        return 2
