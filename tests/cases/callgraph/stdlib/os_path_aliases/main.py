import os
import os.path as osp
from os import path
from os.path import join as pjoin


def build():
    os.path.join("a", "b")
    osp.exists("a")
    path.isdir("a")
    pjoin("a", "b")
    os.getcwd()


build()
