import lib.io.reader as r
from lib import io as lio

r.open_reader("a").read()
lio.reader.Reader().read()
