from plugins import plugin as register


@register
class Beta:
    def run(self):
        return "beta"
