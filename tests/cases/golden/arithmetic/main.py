a, b = 6, 4
results = [a + b, a - b, a * b, a / b, a // b, a % b, a**b, a @ b]
bits = [a << b, a >> b, a | b, a & b, a ^ b]
signs = +a, -a, ~a, not a
