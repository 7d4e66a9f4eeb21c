import asyncio


class Bot:
    def __init__(self):
        self.handlers = {}

    def on(self, name):
        def add(function):
            self.handlers.setdefault(name, []).append(function)
            return function

        return add

    async def feed(self, name, text):
        for handler in self.handlers.get(name, []):
            await handler(text)
        await asyncio.gather(*[handler(text) for handler in self.handlers[name]])


bot = Bot()


@bot.on("hi")
async def hello(text):
    return reply(text)


def reply(text):
    return text


asyncio.run(bot.feed("hi", "x"))
