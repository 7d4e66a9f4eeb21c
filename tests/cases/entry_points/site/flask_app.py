from flask import Blueprint, Flask
from flask.views import MethodView
from flask_login import LoginManager

app = Flask(__name__)
blueprint = Blueprint("shop", __name__)
login = LoginManager()


@app.route("/items", methods=["GET"])
def items():  # http /items flask
    return helper()


@blueprint.post("/orders")
def orders():  # http /orders flask
    return ""


def ruled():  # http /ruled flask
    return ""


def viewed():  # http /viewed flask
    return ""


app.add_url_rule("/ruled", "ruled", ruled)
app.add_url_rule("/viewed", view_func=viewed)


class Orders(MethodView):
    def get(self):  # http get flask
        return self.helper()

    def dispatch_request(self):  # http dispatch_request flask
        return ""

    def helper(self):
        return ""


@app.errorhandler(404)
def missing(error):  # handler missing flask
    return ""


def broken(error):  # handler broken flask
    return ""


app.register_error_handler(500, broken)


@app.cli.command("load")
def load():  # command load flask
    pass


@login.user_loader
def load_user(name):  # handler load_user flask
    return name


def register(somewhere):
    @somewhere.route("/inner")
    def inner():  # http /inner routes
        return ""

    return inner


def helper():
    return ""
