import pathlib
from logging import Logger


def save(path: pathlib.Path, log: Logger):
    path.write_text("x")
    log.info("saved")
