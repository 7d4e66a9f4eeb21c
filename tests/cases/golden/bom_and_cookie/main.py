# -*- coding: utf-8 -*-
name = 'é'


def f():
    return name
