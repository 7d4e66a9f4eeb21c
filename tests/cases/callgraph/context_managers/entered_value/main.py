class Session:
    def query(self):
        return 1


class Database:
    def __enter__(self):
        return Session()

    def __exit__(self, kind, value, trace):
        return None


with Database() as session:
    session.query()
