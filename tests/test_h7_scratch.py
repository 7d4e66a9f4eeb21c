import os, time
from test_examples import *
def cpu():
    import subprocess
    me=os.getpid(); total=0
    for p in os.listdir("/proc"):
        if p.isdigit():
            try: f=open(f"/proc/{p}/stat").read().rsplit(")",1)[1].split()
            except OSError: continue
            if int(f[1])==me: total+=int(f[11])+int(f[12])
    t=os.times(); return total/100, t.user+t.system
def test_x(ask_lake, spark):
    session=spark.newSession()
    def step(name,f):
        a=cpu();w=time.time(); r=f(); b=cpu(); print(f"{name:20} wall {time.time()-w:.1f} jvm {b[0]-a[0]:.1f} py {b[1]-a[1]:.1f}"); return r
    step("script", lambda: ask_spark().main(session, str(ask_lake), "flask.json.dumps"))
    names={"spark":session}
    for c in [CODE[0]]+[c for c in CODE if needs_spark(c) and "getOrCreate" not in source(c)]:
        step(c["id"], lambda: run([c], ask_lake, names))
    step("script again", lambda: ask_spark().main(session, str(ask_lake), "flask.json.dumps"))
