from . import storage
from .model import Item


def serve():
    return storage.save(Item())
