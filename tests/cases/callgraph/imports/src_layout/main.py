from shop.order import place

place()
