from framework.base_view import View


class Home(View):
    def show(self):
        return self.renderer.render()


Home().show()
