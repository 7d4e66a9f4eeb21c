import commands
from cli import main as cli_main

cli_main(["build", "x"])
cli_main(["clean-up"])
cli_main([])
