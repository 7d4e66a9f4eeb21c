from pathlib import Path
import time
from test_questions_page import QUESTIONS
from codeanatomy.query.lake import Lake
def test_spark_same(ask_lake: Path, spark):
    light=Lake.open(str(ask_lake)); s=Lake.open(str(ask_lake), spark=spark.newSession())
    for q in QUESTIONS:
        t=time.time(); a=[tuple(r.values()) for r in light.sql(q.sql).rows]; b=[tuple(r) for r in s.sql(q.sql).collect()]
        print(q.number, a==[tuple(float(v) if type(v).__name__=="Decimal" else v for v in r) for r in b], f"{time.time()-t:.1f}")
        if q.number in (7,): print(a[:2], b[:2])
