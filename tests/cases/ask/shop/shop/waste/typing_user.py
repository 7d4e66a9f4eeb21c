import shop.waste.typed


class User:
    greet = shop.waste.typed.greet
