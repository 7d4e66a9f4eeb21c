import asyncio


class Ticker:
    def __init__(self):
        self.left = 2

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.left == 0:
            raise StopAsyncIteration
        self.left -= 1
        return self.left


async def program():
    async for _ in Ticker():
        pass


asyncio.run(program())
