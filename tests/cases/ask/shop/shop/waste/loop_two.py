import shop.waste.loop_three


def reach():
    from shop.waste import loop_one

    return loop_one
