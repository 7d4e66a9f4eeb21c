from ..models import User as Person
from .. import models


def show():
    Person().save()
    models.User()
