import api

api.widget("x").paint()
