class Editor:
    def __init__(self):
        self.text = ""

    def insert(self, text):
        self.text += text

    def erase(self, count):
        self.text = self.text[:-count]


class Insert:
    def __init__(self, editor, text):
        self.editor, self.text = editor, text

    def do(self):
        self.editor.insert(self.text)

    def undo(self):
        self.editor.erase(len(self.text))


class History:
    def __init__(self):
        self.stack = []

    def run(self, command):
        command.do()
        self.stack.append(command)

    def back(self):
        if self.stack:
            self.stack.pop().undo()


history = History()
history.run(Insert(Editor(), "x"))
history.back()
