class Vault:
    __code = 1

    def __init__(self, __key):
        self.__key = __key

    def __open(self):
        return self.__key, self.__code, __import__

    def unlock(self):
        return self.__open()
