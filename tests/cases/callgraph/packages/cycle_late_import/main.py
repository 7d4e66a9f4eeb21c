from shop.customers import Customer

Customer().remind()
