"""CodeAnatomy: a Code Property Graph lakehouse for Python, on Spark and Delta Lake.

`codeanatomy.catalog` says what the tables are, `codeanatomy.delta` reads and writes them. Importing
the package starts nothing and imports no Spark.
"""

from __future__ import annotations

__version__ = "0.1.0"
