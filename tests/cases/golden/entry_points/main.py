import unittest

from flask import Flask

app = Flask(__name__)


@app.route("/items")
def items():
    return ""


def added():
    return ""


app.add_url_rule("/added", view_func=added)


class Case(unittest.TestCase):
    pass


class Cases(Case):
    def test_items(self):
        assert items() == ""


HANDLERS = {"items": "main.items", "run": "run = main:added"}

if __name__ == "__main__":
    items()
