; defs 1
; Functions, classes and lambdas; a lambda has no name. A decorated definition begins at its `def` or `class`.

(function_definition name: (_) @name) @def
(class_definition name: (_) @name) @def
(lambda) @def
