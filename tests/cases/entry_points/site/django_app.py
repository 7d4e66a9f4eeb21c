from django import template
from django.apps import AppConfig
from django.contrib import admin
from django.core.checks import register
from django.db import models
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.urls import path
from django.views import View
from rest_framework.decorators import action
from rest_framework.viewsets import ViewSet

tags = template.Library()


def index(request):  # http index/ django
    return ""


class Detail(View):  # http detail/ django
    def get(self, request):  # http get django
        return ""


urlpatterns = [path("index/", index), path("detail/", Detail.as_view())]


class Items(ViewSet):
    def list(self, request):  # http list django
        return []

    @action(detail=True)
    def extra(self, request):  # http extra django
        return []


@receiver(post_save)
def saved(sender, **kwargs):  # event saved django
    pass


def deleted(sender, **kwargs):  # event deleted django
    pass


post_save.connect(deleted)


class Item(models.Model):
    class Meta:  # handler Meta django
        ordering = ()


@admin.register(Item)
class ItemAdmin(admin.ModelAdmin):  # plugin ItemAdmin django
    pass


class SiteConfig(AppConfig):
    def ready(self):  # plugin ready django
        pass


@tags.filter
def shorten(text):  # handler shorten django
    return text


@register()
def check(configs, **kwargs):  # handler check django
    return []
