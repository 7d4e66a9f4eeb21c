from garage import park
from vehicle import Car

park(Car("a"))
