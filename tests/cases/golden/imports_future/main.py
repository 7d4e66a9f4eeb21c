from __future__ import annotations, generator_stop

import sys as system, os

system.exit(os)
