from .. import version
from ..database import rows


def index():
    return version(), rows()
