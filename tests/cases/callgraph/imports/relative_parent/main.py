import app.web.views

app.web.views.index()
