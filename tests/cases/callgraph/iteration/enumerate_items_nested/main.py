class Rule:
    def apply(self, n):
        return n


def other(n):
    return n


rules = {"a": (Rule(), other), "b": (Rule(), other)}
for i, (name, (rule, function)) in enumerate(rules.items()):
    rule.apply(i)
    function(i)
