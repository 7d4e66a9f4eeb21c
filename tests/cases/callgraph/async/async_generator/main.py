import asyncio


def job():
    return 1


async def jobs():
    yield job


async def program():
    async for each in jobs():
        each()


asyncio.run(program())
