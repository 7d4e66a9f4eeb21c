"""Show a lake in a browser: `codeanatomy explore --lake lake`.

A page is a function from a `Visit` (a request, and the published snapshot that answers it) to a response. The
server renders everything, so that source and lists can be read without JavaScript; small modules in `static`
add suggestions, hover cards, zoom and sorting. Each page names the run it was made from, and its scripts ask
for that run, so that a page never mixes two runs.

    app             routes, and the responses to errors
    flow_pages      where the value of a variable comes from and goes
    flows           steps, arrows and excerpts of a flow
    guard           who may send a request: Host, Origin, token, size, time; headers of every response
    home            repositories and search
    impact_page     what a change affects
    lakes           the newest snapshot, and older ones that visitors name
    links           addresses of pages
    picture_pages   calls, classes, imports and control flow as pictures
    pictures        diagrams of calls, classes, imports and control flow
    runs            pages about runs, differences, failures and tables
    search          suggestions by a part of a name
    server          the process: address, port, limits
    source_names    names in a file as links and cards
    source_pages    files and folders
    source_text     lines of source as HTML
    sql_page        SQL over the views
    symbol_pages    a symbol and how it is used
    visit           a request, its snapshot, and templates
"""
