import tools

tools.render("x")
