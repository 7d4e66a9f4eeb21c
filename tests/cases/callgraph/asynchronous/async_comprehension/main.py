import asyncio


class Page:
    def title(self):
        return "t"


async def pages(n):
    for _ in range(n):
        yield Page()


async def titles():
    return [page.title() async for page in pages(2)]


asyncio.run(titles())
