import shop.ends.bracketed
