from client import Client

Client().load("x")
