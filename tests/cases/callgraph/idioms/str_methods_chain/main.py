def slug(title):
    text = "-".join(title.lower().split())
    parts = text.partition("-")
    return f"{text}".encode().decode().title() + parts[0].strip()


slug("A b")
