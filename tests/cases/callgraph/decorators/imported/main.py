from tools.retry import retry


@retry(attempts=2)
def fetch():
    return 1


fetch()
