class Service:
    def run(self):
        from heavy import Model

        return Model().fit()


def quick():
    import heavy as h

    return h.compute(2)


Service().run()
quick()
