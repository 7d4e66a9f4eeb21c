from api import PublicClient, connect
import api

connect()
PublicClient()
api.helper()
