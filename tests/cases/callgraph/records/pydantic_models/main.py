from pydantic import BaseModel, Field, PrivateAttr
from pydantic_settings import BaseSettings


class Apple:
    def peel(self): ...


class Brick:
    def peel(self): ...


def new_brick():
    return Brick()


class Model(BaseModel):
    fruit: object
    stone: object = Field(default_factory=new_brick)
    _cache: object = PrivateAttr(default_factory=new_brick)

    def model_post_init(self, context):
        self.fruit.peel()


class Child(Model):
    other: object = Field(None, alias="another")


class Settings(BaseSettings):
    stone: object = None


def model():
    Model(fruit=Apple()).stone.peel()


def child():
    Child(fruit=Apple(), stone=Brick(), another=Brick()).other.peel()


def settings():
    Settings(stone=Brick()).stone.peel()


model()
child()
settings()
