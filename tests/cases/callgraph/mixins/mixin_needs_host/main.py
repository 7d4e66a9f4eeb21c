class JsonMixin:
    def to_json(self):
        return self.encode(self.as_dict())

    def encode(self, data):
        return str(data)


class User(JsonMixin):
    def as_dict(self):
        return {"u": 1}


class Group(JsonMixin):
    def as_dict(self):
        return {"g": [u.to_json() for u in self.members()]}

    def members(self):
        return [User()]


Group().to_json()
