import importlib

import plugins

for name in ("plugins.alpha", "plugins.beta"):
    importlib.import_module(name)

for cls in plugins.REGISTRY:
    cls().run()
