from django.db import migrations


def forwards(apps, editor):  # migration forwards django
    pass


def backwards(apps, editor):  # migration backwards django
    pass


class Migration(migrations.Migration):  # migration Migration django
    operations = [migrations.RunPython(forwards, backwards)]
