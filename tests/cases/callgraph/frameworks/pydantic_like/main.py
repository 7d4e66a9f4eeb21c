from pydantic import BaseModel


class Address(BaseModel):
    city: str

    def label(self) -> str:
        return self.city.upper()


class User(BaseModel):
    name: str
    address: Address
    others: list[Address] = []

    def show(self):
        for other in self.others:
            other.label()
        return self.address.label()


def load(data: dict):
    user = User(**data)
    user.show()
    user.address.label()
    return user.model_dump()
