def pull(mass, radius):
    return mass / radius
