"""The process of a refresh that computes (`worker`).

The steps are imported before anybody asks for them: the one who starts it has something else to do meanwhile.
"""

from __future__ import annotations

import os

from codeanatomy.pipeline.refresh.worker import serve

serve()
# The other side has hung up: what libraries would say while an interpreter is taken down is for nobody.
os._exit(0)
