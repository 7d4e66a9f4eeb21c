import dramatiq
from apscheduler.schedulers.background import BackgroundScheduler
from celery import Celery, Task, shared_task
from celery.signals import worker_ready

queue = Celery()
scheduler = BackgroundScheduler()


@queue.task(name="send")
def send():  # task send celery
    pass


@shared_task
def clean():  # task clean celery
    pass


@worker_ready.connect
def ready(**kwargs):  # event ready celery
    pass


class Report(Task):
    def run(self):  # task run celery
        pass


@dramatiq.actor
def act():  # task act jobs
    pass


def tick():  # task tick jobs
    pass


scheduler.add_job(tick)
