import plugin_one
import plugin_two
from state import registry as reg

reg.run_all()
