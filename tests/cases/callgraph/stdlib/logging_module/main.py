import logging

logger = logging.getLogger(__name__)


class Job:
    log = logging.getLogger("job")

    def run(self):
        logger.debug("run %s", self)
        self.log.warning("x")
        return logging.INFO


Job().run()
