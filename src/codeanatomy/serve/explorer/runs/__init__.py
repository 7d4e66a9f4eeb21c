"""Pages about the lake itself: its runs, what changed between them, failures and tables.

diff_page      what changed between two runs
plots          plots as SVG
report_pages   what is unused, in cycles, unresolved, and entry points
run_pages      time line of runs, and the costs of one run
shared_work    slow work, done once for all visitors
state_pages    errors by file, maintenance of tables
"""
