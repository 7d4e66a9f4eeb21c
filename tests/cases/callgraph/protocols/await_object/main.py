import asyncio


class Later:
    def __init__(self, value):
        self.value = value

    def __await__(self):
        yield from asyncio.sleep(0).__await__()
        return self.value


class Ticks:
    def __init__(self):
        self.n = 2

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.n:
            raise StopAsyncIteration
        self.n -= 1
        return Tick()


class Tick:
    def show(self):
        return 1


async def main():
    tick = await Later(Tick())
    tick.show()
    async for each in Ticks():
        each.show()


asyncio.run(main())
