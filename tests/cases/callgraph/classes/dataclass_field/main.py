from dataclasses import dataclass


class Printer:
    def print_page(self):
        return 1


@dataclass(frozen=True)
class Desk:
    printer: Printer

    def work(self):
        return self.printer.print_page()


Desk(Printer()).work()
Desk(printer=Printer()).printer.print_page()
