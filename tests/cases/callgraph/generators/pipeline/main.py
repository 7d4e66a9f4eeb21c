from pipeline import read, transform

for item in transform(read()):
    item.save()
