import asyncio


class Result:
    def show(self):
        return 1


async def work():
    await asyncio.sleep(0)
    return Result()


async def main():
    task = asyncio.create_task(work())
    (await task).show()
    (await asyncio.wait_for(work(), 1)).show()


asyncio.run(main())
