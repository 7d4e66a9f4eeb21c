from app import name
from app.cli import main

main(name)
