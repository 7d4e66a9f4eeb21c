def nested(work, undo):
    try:
        try:
            work()
        except ValueError:
            undo()
        finally:
            print("inner")
    except Exception:
        print("outer")
