from pipeline.record import Record


def read():
    yield Record()
