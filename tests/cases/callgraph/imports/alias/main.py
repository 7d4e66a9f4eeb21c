import geometry as g
import tools.text as t
from geometry import area as surface

g.area()
t.trim()
surface()
