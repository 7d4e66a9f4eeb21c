import asyncio


class Response:
    async def json(self):
        return {"a": self.status()}

    def status(self):
        return 200


class Session:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *exc):
        await self.close()

    async def close(self):
        return None

    async def get(self, url):
        return Response()


class Api:
    def __init__(self, session):
        self._session = session

    async def fetch(self, url):
        response = await self._session.get(url)
        return await response.json()


async def main():
    async with Session() as session:
        api = Api(session)
        return await asyncio.gather(*(api.fetch(u) for u in "ab"))


asyncio.run(main())
