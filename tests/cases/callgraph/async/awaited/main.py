import asyncio


async def fetch():
    return 1


async def program():
    return await fetch()


asyncio.run(program())
