class Conn:
    def __init__(self):
        self.send = self._connect_and_send

    def _connect_and_send(self, text):
        self.send = self._send
        return self.send(text)

    def _send(self, text):
        return text


conn = Conn()
conn.send("a")
conn.send("b")
