from __future__ import annotations

import typing as t


class Conn:
    def close(self):
        return 1


class Pool:
    conns: t.List[Conn]
    by_name: t.Dict[str, Conn]
    main: t.ClassVar[t.Optional[Conn]] = None

    def shut(self):
        for conn in self.conns:
            conn.close()
        self.by_name["x"].close()
        if self.main:
            self.main.close()


def use(factory):
    conn: Conn = factory()
    conn.close()
    last: t.Optional[Conn] = None
    for each in factory():
        last = each
    if last is not None:
        last.close()
