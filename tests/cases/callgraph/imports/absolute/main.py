import shop.cart
from shop.prices import total

total(shop.cart.items())
