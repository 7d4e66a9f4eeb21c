import conf


def run():
    return conf.LEVELS["debug"]()


run()
conf.LEVELS["info"]()
