def hello():
    return "bonjour"
