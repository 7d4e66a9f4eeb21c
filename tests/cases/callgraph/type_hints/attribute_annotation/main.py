class Printer:
    def page(self):
        return 1


class Office:
    printer: Printer

    def work(self):
        return self.printer.page()
