"""CodeAnatomy: a Code Property Graph lakehouse for Python, on Spark and Delta Lake.

`codeanatomy.catalog` declares the tables, `codeanatomy.delta` reads and writes them, docs/architecture.md
describes the packages. Importing the package starts nothing and does not import Spark.
"""

from __future__ import annotations

__version__ = "0.1.0"
