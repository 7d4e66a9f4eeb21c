r"""Questions to a built lake in a Spark session of your own: who calls a symbol, what is used from outside.

    spark-submit \
        --packages io.delta:delta-spark_4.2_2.13:4.4.0 \
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
        examples/ask_spark.py lake flask.json.dumps

The session is whatever spark-submit has opened; it only has to speak Delta, and driver and executors have to
see the lake under the same path. Where no packages can be fetched, `--jars` takes those that
`codeanatomy setup` has put into its cache folder.

The package is needed by the driver alone: questions become plans of Spark SQL, and no Python runs on
executors. If the driver runs where you are (`--deploy-mode client`), install it there, beside PySpark. If it
runs on the cluster, or if functions of your own (`udf`, `mapInPandas`) import codeanatomy on executors, send
along a packed environment (`venv-pack -o environment.tar.gz`); `--py-files` is not enough, for msgspec,
deltalake and duckdb have compiled parts:

    PYSPARK_PYTHON=./environment/bin/python spark-submit --archives environment.tar.gz#environment ...
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession

from codeanatomy.errors import CodeAnatomyError
from codeanatomy.query.lake import Lake

ROWS = 20
OUTSIDE = """
    SELECT split_part(callee, '.', 1) AS package, count(DISTINCT caller_id) AS callers, count(*) AS calls
    FROM calls
    WHERE external
    GROUP BY 1
    ORDER BY callers DESC, package
"""


def main(spark: SparkSession, root: str, symbol: str) -> None:
    lake = Lake.open(root, spark=spark)
    try:
        callers = lake.callers(symbol)
        show(f"Who calls {symbol}", callers.select("symbol", "path", "line", "confidence"))
        show("What is used from outside, by how many functions", lake.sql(OUTSIDE))
    finally:
        # Takes away the temporary views that the questions needed; the session goes on.
        lake.close()


def show(title: str, rows: DataFrame) -> None:
    print(title)
    rows.show(ROWS, truncate=False)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: ask_spark.py LAKE SYMBOL")
    session = SparkSession.builder.appName("ask").getOrCreate()
    try:
        main(session, *sys.argv[1:])
    except CodeAnatomyError as problem:
        sys.exit(str(problem))
    finally:
        session.stop()
