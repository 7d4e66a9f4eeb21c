"""Show a lake in a browser: `codeanatomy explore --lake lake`.

A page is a function from a `Visit` (a request, and the published snapshot that answers it) to a response. The
server renders everything, so that source and lists can be read without JavaScript; small modules in `static`
add suggestions, hover cards, zoom and sorting. Each page names the run it was made from, and its scripts ask
for that run, so that a page never mixes two runs.

app             routes, and the responses to errors
guard           who may send a request: Host, Origin, token, size, time; headers of every response
home            repositories, folders, and search
links           addresses of pages
lakes           the newest snapshot, and older ones that visitors name
search          suggestions by a part of a name
server          the process: address, port, limits
visit           a request, its snapshot, and templates
"""
