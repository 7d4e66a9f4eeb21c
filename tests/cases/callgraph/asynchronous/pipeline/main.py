import asyncio


async def produce(queue, jobs):
    for job in jobs:
        await queue.put(job)
    await queue.put(None)


async def consume(queue):
    while True:
        job = await queue.get()
        if job is None:
            return
        await job()


async def a():
    return 1


async def b():
    return 2


class Queue:
    def __init__(self):
        self.items = []

    async def put(self, item):
        self.items.append(item)

    async def get(self):
        return self.items.pop(0)


async def main():
    queue = Queue()
    await produce(queue, [a, b])
    await consume(queue)


asyncio.run(main())
