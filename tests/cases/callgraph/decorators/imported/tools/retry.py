from functools import wraps


def retry(attempts):
    def decorate(function):
        @wraps(function)
        def again():
            for _ in range(attempts):
                result = function()
            return result

        return again

    return decorate
