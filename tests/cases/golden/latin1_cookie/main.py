# coding: latin-1
café = 'é'
print(café, 'ü'); café
