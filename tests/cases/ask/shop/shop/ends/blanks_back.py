import shop.ends.blanks
