import asyncio


async def fetch(delay):
    await asyncio.sleep(delay)
    return delay


async def main():
    one = await fetch(1)
    task = asyncio.create_task(fetch(2))
    return one + await task


asyncio.run(main())
