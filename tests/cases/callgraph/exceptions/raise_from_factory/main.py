from errors import not_found


def find():
    raise not_found("x")


try:
    find()
except LookupError as error:
    str(error)
