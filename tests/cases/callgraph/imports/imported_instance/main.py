from config import settings

settings.reload()
