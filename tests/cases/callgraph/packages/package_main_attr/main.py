import proj

proj.sub.leaf.grow()
