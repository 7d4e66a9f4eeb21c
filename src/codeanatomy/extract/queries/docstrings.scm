; docstrings 1
; The first statement of a module, class or function, where it is a string: one literal or several side by
; side, bare or in one pair of parentheses. Two things a pattern cannot say are tested after it: the literals
; are neither bytes nor formatted, and @_statement is nothing but @_value (the comma of `"a",` is no named
; node). Captures that begin with an underscore serve this test only.

(module
  . (comment)*
  . (expression_statement [
      (string) @doc
      (concatenated_string) @doc
      (parenthesized_expression [(string) (concatenated_string)] @doc)
    ] @_value) @_statement) @owner

(class_definition body: (block
  . (comment)*
  . (expression_statement [
      (string) @doc
      (concatenated_string) @doc
      (parenthesized_expression [(string) (concatenated_string)] @doc)
    ] @_value) @_statement)) @owner

(function_definition body: (block
  . (comment)*
  . (expression_statement [
      (string) @doc
      (concatenated_string) @doc
      (parenthesized_expression [(string) (concatenated_string)] @doc)
    ] @_value) @_statement)) @owner
