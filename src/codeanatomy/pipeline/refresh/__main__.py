"""Run the worker process of a refresh (`pipeline.refresh.worker`).

The steps are imported at once, while the process that started it does other work.
"""

from __future__ import annotations

import os

from codeanatomy.pipeline.refresh.worker import serve

serve()
# The parent has closed the pipe. Skip the shutdown of the interpreter: libraries print warnings there.
os._exit(0)
