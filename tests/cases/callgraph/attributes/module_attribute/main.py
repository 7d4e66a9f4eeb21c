import settings


def loud():
    return "!"


settings.hook = loud
settings.run()
