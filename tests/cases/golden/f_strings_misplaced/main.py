a, b, c = 1, 2, 3
z = f"""{a}
 {f'''
{(lambda x: x)(b.real)}'''} {c}"""
