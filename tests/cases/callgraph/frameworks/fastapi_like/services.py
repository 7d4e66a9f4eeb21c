class UserService:
    async def all(self):
        return self._load()

    def _load(self):
        return []


def get_service() -> UserService:
    return UserService()
