class Query:
    def where(self, **conditions):
        return self

    def all(self):
        return [self]


Query().where(a=1).where(b=2).all()
(
    Query()
    .where()
    .all()
)
