HANDLERS = []


def handler(function):
    HANDLERS.append(function)
    return function


@handler
def h0():
    return 0


@handler
def h1():
    return 1


@handler
def h2():
    return 2


@handler
def h3():
    return 3


@handler
def h4():
    return 4


@handler
def h5():
    return 5


@handler
def h6():
    return 6


@handler
def h7():
    return 7


@handler
def h8():
    return 8


@handler
def h9():
    return 9


@handler
def h10():
    return 10


@handler
def h11():
    return 11


@handler
def h12():
    return 12


@handler
def h13():
    return 13


@handler
def h14():
    return 14


@handler
def h15():
    return 15


@handler
def h16():
    return 16


@handler
def h17():
    return 17


@handler
def h18():
    return 18


@handler
def h19():
    return 19


@handler
def h20():
    return 20


@handler
def h21():
    return 21


@handler
def h22():
    return 22


@handler
def h23():
    return 23


@handler
def h24():
    return 24


@handler
def h25():
    return 25


@handler
def h26():
    return 26


@handler
def h27():
    return 27


@handler
def h28():
    return 28


@handler
def h29():
    return 29


@handler
def h30():
    return 30


@handler
def h31():
    return 31


@handler
def h32():
    return 32


@handler
def h33():
    return 33


@handler
def h34():
    return 34


@handler
def h35():
    return 35


@handler
def h36():
    return 36


@handler
def h37():
    return 37


@handler
def h38():
    return 38


@handler
def h39():
    return 39


@handler
def h40():
    return 40


@handler
def h41():
    return 41


@handler
def h42():
    return 42


@handler
def h43():
    return 43


@handler
def h44():
    return 44


@handler
def h45():
    return 45


@handler
def h46():
    return 46


@handler
def h47():
    return 47


@handler
def h48():
    return 48


@handler
def h49():
    return 49


@handler
def h50():
    return 50


@handler
def h51():
    return 51


@handler
def h52():
    return 52


@handler
def h53():
    return 53


@handler
def h54():
    return 54


@handler
def h55():
    return 55


@handler
def h56():
    return 56


@handler
def h57():
    return 57


@handler
def h58():
    return 58


@handler
def h59():
    return 59


def run():
    for function in HANDLERS:
        function()


run()
