async def numbers():
    for n in range(3):
        yield n


async def collect(check):
    found = [n async for n in numbers() if await check(n)]
    lazy = (n async for n in numbers())
    return found, {n: await check(n) for n in found}, lazy
