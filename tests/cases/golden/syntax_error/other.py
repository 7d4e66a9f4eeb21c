from main import good

good()
