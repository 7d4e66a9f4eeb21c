import lazy_mod

lazy_mod.Thing().go()
