from .model import Order
from .ports import OrderRepository
