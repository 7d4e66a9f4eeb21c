from models import *

User().save()
