from api._core import connect, Client as PublicClient
from api._core import helper as helper

__all__ = ["connect", "PublicClient"]
