import asyncio


class Connection:
    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, trace):
        return None

    def send(self):
        return 1


async def program():
    async with Connection() as connection:
        connection.send()


asyncio.run(program())
