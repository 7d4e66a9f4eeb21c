from ...core import Engine
from ... import util
from ...util import text as text_tools


def fetch(url):
    text_tools.clean(url)
    util.text.clean(url)
    return Engine().feed(url)
