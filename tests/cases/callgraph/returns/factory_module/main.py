from factory import create

shape = create("circle")
shape.draw()
