import lazy

lazy.present()
lazy.absent()
