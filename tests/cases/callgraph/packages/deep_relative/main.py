from app.plugins.net.http import fetch

fetch("x")
