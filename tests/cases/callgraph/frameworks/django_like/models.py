from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=10)

    def full(self):
        return self.pk

    def save(self, *args, **kwargs):
        self.touch()
        super().save(*args, **kwargs)

    def touch(self):
        return None
