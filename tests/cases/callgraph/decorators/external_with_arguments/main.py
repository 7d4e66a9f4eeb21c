from retrying import retry
import celery_app


@retry(times=3)
def fetch(url):
    return parse(url)


@celery_app.task(bind=True)
@retry(times=1)
def job(self, url):
    return fetch(url)


class Client:
    @retry(times=2)
    def get(self, url):
        return self.check(url)

    def check(self, url):
        return url


def parse(url):
    return url


fetch("u")
job("u")
Client().get("u")
