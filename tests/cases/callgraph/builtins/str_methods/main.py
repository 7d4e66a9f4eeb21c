def clean(text="  A b "):
    words = text.strip().lower().split()
    return "-".join(words)


clean()
