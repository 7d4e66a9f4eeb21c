from django.core.management.base import BaseCommand


class Command(BaseCommand):  # command Command django
    def handle(self, *args, **options):  # command handle django
        pass
