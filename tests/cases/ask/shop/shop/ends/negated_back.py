import shop.ends.negated
