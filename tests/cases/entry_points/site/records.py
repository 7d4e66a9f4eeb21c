import attr
from pydantic import BaseModel, field_validator
from sqlalchemy import event
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import validates
from wtforms import Form


@event.listens_for(object, "load")
def loaded(target, context):  # event loaded sqlalchemy
    pass


def stored(target, context):  # event stored sqlalchemy
    pass


event.listen(object, "store", stored)


class Row:
    @validates("name")
    def check_name(self, key, value):  # validator name sqlalchemy
        return value


@compiles(Row)
def compile_row(element, compiler, **kw):  # handler compile_row sqlalchemy
    return ""


class Item(BaseModel):
    name: str

    class Config:  # handler Config pydantic
        frozen = True

    @field_validator("name")
    def not_empty(cls, value):  # validator name pydantic
        return value


@attr.s
class Box:
    size = attr.ib()

    @size.validator
    def check_size(self, attribute, value):  # validator check_size attrs
        pass


class Login(Form):
    def validate_name(self, field):  # validator validate_name wtforms
        pass
