r"""A build as a job of a Spark platform: sources and a lake, in the session that the job has.

    spark-submit \
        --master spark://host:7077 \
        --packages io.delta:delta-spark_4.2_2.13:4.4.0 \
        --conf spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension \
        --conf spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog \
        --archives env.tar.gz#environment \
        --conf spark.pyspark.python=./environment/bin/python \
        --conf spark.pyspark.driver.python=python3 \
        examples/build_job.py s3a://bucket/lake requests=s3a://bucket/sources/requests

`env.tar.gz` is what `codeanatomy environment --output env.tar.gz` writes: the Python of this machine with
codeanatomy and its packages, for the executors; the driver runs in the one where that command ran. Leave out
the last three options where all hosts have codeanatomy installed, in the same Python. What the session lacks
is reported before any work starts, and the exit code is that of the command: 4.

Settings are those of `codeanatomy build`: variables such as CODEANATOMY_EXTRACT__PARTITIONS, or a
codeanatomy.toml in the working folder of the driver.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import codeanatomy


def main(spark: SparkSession, lake: str, *sources: str) -> int:
    try:
        report = codeanatomy.build(sources, lake, spark=spark, progress=True)
    except codeanatomy.errors.CodeAnatomyError as problem:
        print(problem, file=sys.stderr)
        return problem.exit_code
    for name, repository in report.repositories.items():
        print(f"{name}: {repository.status}, {repository.files:,} files")
    print(f"run {report.run_id}: {report.status}")
    return codeanatomy.errors.EXIT_FINDINGS if report.status == "failed" else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: build_job.py LAKE SOURCE...")
    session = SparkSession.builder.appName("build").getOrCreate()
    try:
        code = main(session, *sys.argv[1:])
    finally:
        session.stop()
    sys.exit(code)
