import asyncio


async def a():
    return 1


async def b():
    return 2


async def program():
    return await asyncio.gather(a(), b())


asyncio.run(program())
