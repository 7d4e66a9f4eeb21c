import asyncio
import functools


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


def traced(function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        return await function(*args, **kwargs)

    return wrapper


@traced
async def eat(fruit):
    fruit.peel()
    return fruit


@traced
async def build(brick):
    brick.peel()


async def kitchen():
    fruit = await eat(Apple())
    fruit.peel()


async def site():
    await build(Brick())


asyncio.run(kitchen())
asyncio.run(site())
