def join(parts: list[str], seen: set[int], names: dict[str, int], text: str):
    parts.append(text.strip())
    seen.add(len(parts))
    names.setdefault(text, 1)
    for part in parts:
        part.lower()
    for name in names:
        name.title()
