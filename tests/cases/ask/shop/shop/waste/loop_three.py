from shop.waste.loop_one import round_one

START = round_one
