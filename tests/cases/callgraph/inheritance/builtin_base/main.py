class Stack(list):
    def push(self, item):
        self.append(item)


stack = Stack()
stack.push(1)
stack.pop()
