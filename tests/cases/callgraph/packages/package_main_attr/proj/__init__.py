import proj.sub.leaf
