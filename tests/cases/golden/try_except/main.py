def parse(text):
    try:
        value = int(text)
    except (TypeError, ValueError) as problem:
        value = problem.args
    except KeyError:
        raise
    else:
        print("fine")
    finally:
        print("over")
    return value
