def setup(app):  # plugin setup sphinx
    pass
