class AppError(Exception):
    def status(self):
        return 500


class NotFound(AppError):
    def status(self):
        return 404


def find():
    raise NotFound


def serve():
    try:
        find()
    except AppError as error:
        return error.status()


serve()
