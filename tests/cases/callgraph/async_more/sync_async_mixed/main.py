import asyncio


def sync(method, *args):
    return asyncio.run(method(*args))


class Db:
    async def query(self, text):
        return await self._send(text)

    async def _send(self, text):
        return Result(text)


class Result:
    def __init__(self, text):
        self.text = text

    def rows(self):
        return [self.text]


sync(Db().query, "x").rows()
