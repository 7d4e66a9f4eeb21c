def patch():
    return 1
