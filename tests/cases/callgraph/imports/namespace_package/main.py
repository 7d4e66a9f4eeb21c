import plugins.csv.reader
from plugins.json import writer

plugins.csv.reader.read()
writer.write()
