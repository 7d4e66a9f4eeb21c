# Grüße an alle
größe, ﬁle = "é😀", 1
名前 = größe + "→"; print(名前)


def übung(ñ):
    """Ein Text mit „Zeichen“."""
    return f"😀{ñ}{größe}", ñ


übung("𝔘"); file
