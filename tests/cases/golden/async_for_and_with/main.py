class Stream:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *details): ...

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise StopAsyncIteration


async def read():
    async with Stream() as stream:
        async for item in stream:
            print(item)
        else:
            print("end")
