def park(car):
    return car.stop()
