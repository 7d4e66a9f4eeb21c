from django.shortcuts import get_object_or_404, render

from models import Author


def create(request):
    author = Author(name="x")
    author.save()
    return render(request, "a.html", {"name": author.full()})


def detail(request, pk):
    author = get_object_or_404(Author, pk=pk)
    return render(request, "a.html", {"a": author})
