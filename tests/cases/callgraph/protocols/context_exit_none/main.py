import asyncio
from contextlib import asynccontextmanager


class Conn:
    async def ping(self):
        return 1

    def close(self):
        return None


@asynccontextmanager
async def connect():
    conn = Conn()
    try:
        yield conn
    finally:
        conn.close()


async def main():
    async with connect() as conn:
        await conn.ping()


asyncio.run(main())
