from web import App, JsonResponse


def timing(view):
    def timed(request):
        return view(request)

    return timed


app = App(timing)


@app.get("/users")
def users(request):
    return JsonResponse([])


app.handle("/users")
app.handle("/other")
