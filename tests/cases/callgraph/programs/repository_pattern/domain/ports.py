from abc import ABC, abstractmethod

from .model import Order


class OrderRepository(ABC):
    @abstractmethod
    def get(self, key: str) -> Order: ...

    @abstractmethod
    def save(self, order: Order) -> None: ...
