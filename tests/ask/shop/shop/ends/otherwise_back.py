import shop.ends.otherwise
