import asyncio


class Page:
    def title(self):
        return "t"


async def load():
    return Page()


async def program():
    page = await load()
    return page.title()


asyncio.run(program())
