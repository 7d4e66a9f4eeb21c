class File:
    def __init__(self):
        self.handle = Handle()

    def close(self):
        self.handle.close()


class Handle:
    def close(self):
        return 1


class Socket:
    def close(self):
        return 2


class Window:
    def __init__(self, socket):
        self.socket = socket

    def close(self):
        if self.socket:
            self.socket.close()


def shutdown(file, window):
    file.close()
    window.close()


shutdown(File(), Window(Socket()))
