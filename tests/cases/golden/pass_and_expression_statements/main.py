pass
1 + 1
"alone"
...
print
(yes := True)
