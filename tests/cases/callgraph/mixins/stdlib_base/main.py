import threading


class Registry(dict):
    def put(self, key, value):
        self.setdefault(key, []).append(value)
        return self.get(key)


class Worker(threading.Thread):
    def __init__(self, job):
        super().__init__(daemon=True)
        self.job = job

    def run(self):
        self.job()


def job():
    return 1


Registry().put("a", 1)
worker = Worker(job)
worker.start()
worker.join()
