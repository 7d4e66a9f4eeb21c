; imports 1
; One match per imported name. The module of a relative import begins with its dots; the name may be a `*`.

(import_statement name: (dotted_name) @name) @import
(import_statement name: (aliased_import name: (_) @name alias: (_) @alias)) @import
(import_from_statement module_name: (_) @module name: (dotted_name) @name) @import
(import_from_statement module_name: (_) @module name: (aliased_import name: (_) @name alias: (_) @alias)) @import
(import_from_statement module_name: (_) @module (wildcard_import) @name) @import
(future_import_statement "__future__" @module name: (dotted_name) @name) @import
(future_import_statement "__future__" @module name: (aliased_import name: (_) @name alias: (_) @alias)) @import
