def main(name):
    print(name)
