def on_ok(x):
    return x


def on_fail(x):
    return x


def request(url, **hooks):
    return send(url, **hooks)


def send(url, success=None, failure=None):
    if url:
        return success(url)
    return failure(url)


options = {"success": on_ok, "failure": on_fail}
request("u", **options)
request("", **options)
