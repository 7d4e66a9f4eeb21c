class Query:
    def where(self):
        return self

    def order(self):
        return self

    def run(self):
        return 1


Query().where().order().run()
