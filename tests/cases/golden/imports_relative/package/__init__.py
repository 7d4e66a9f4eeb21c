from .models import User
from . import views
