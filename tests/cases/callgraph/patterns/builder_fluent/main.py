class Query:
    def __init__(self, table, wheres):
        self.table, self.wheres = table, wheres

    def execute(self):
        return self.sql()

    def sql(self):
        return " and ".join(self.wheres)


class QueryBuilder:
    def __init__(self):
        self._table = None
        self._wheres = []

    def table(self, name):
        self._table = name
        return self

    def where(self, text):
        self._wheres.append(text)
        return self

    def build(self):
        return Query(self._table, self._wheres)


(QueryBuilder().table("t").where("a").where("b").build().execute())
