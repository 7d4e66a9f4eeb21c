def finish():
    from shop.waste.late import begin

    return begin
