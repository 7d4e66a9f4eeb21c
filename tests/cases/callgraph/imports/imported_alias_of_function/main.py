import facade

facade.begin()
