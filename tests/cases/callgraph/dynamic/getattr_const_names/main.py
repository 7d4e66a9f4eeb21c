class Model:
    def clean_a(self):
        return 1

    def clean_b(self):
        return 2

    def other(self):
        return 3

    def clean(self):
        for field in ("a", "b"):
            method = getattr(self, f"clean_{field}")
            method()
        for name in ["other"]:
            getattr(self, name)()


Model().clean()
