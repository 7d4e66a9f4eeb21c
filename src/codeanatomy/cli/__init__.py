"""Commands of `codeanatomy`; `main` lists them by group and imports the module of the one that is called.

    main        the table of commands, exit codes
    options     options that several commands share
    printing    tables, JSON, CSV and Markdown on stdout, notes on stderr
    build       build, plan
    ask         the query verbs (find, callers, impact, ...), sql, explore
    checks      callgraph, diff, verify
    changes     changes
    export      export
    runs        status, runs
    observe     observe
    maintain    maintain, its single operations, properties, features
    restore     restore, export-snapshot
    reference   tables, table, kinds, config, doctor, setup, environment, docs
    doctor      checks of this machine
    store_checks  checks of the store of a lake
    docs_pages  generated pages of docs/

Tests: `tests/unit/cli`; those of the query verbs are in `tests/unit/query`.
"""
