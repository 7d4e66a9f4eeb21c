class Settings:
    def __init__(self):
        self.values = {}

    def reload(self):
        return self.values.clear()


settings = Settings()
