import importlib

module = importlib.import_module("worker.jobs")
module.run()
