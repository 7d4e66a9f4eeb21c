class Query:
    def limit(self, n):
        self.n = n
        return self


class Sql(Query):
    def run(self):
        return "sql"


class Mongo(Query):
    def run(self):
        return "mongo"


def sql():
    return Sql().limit(1).run()


def mongo():
    return Mongo().limit(2).run()


sql()
mongo()
