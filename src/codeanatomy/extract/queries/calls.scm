; calls 1
; Calls and what they call. Python 2's print and exec statements are no calls, a decorator without
; parentheses is none either.

(call function: (_) @callee) @call
