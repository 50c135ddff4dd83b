"""What a recording of made-up counts is shown on: see tests/unit/test_attribution.c."""






import sys

def hot(nodes, table):
    node = nodes[0]
    while node.next:
        node = node.next
        if node.key in table:
            table[node.key] += node.value
    total = sum(n.value for n in nodes)
    for key in sorted(table):
        if key & 1:
            total -= table[key]
        else:
            total += table[key]
    names = {str(key): key for key in table}
    with open("/dev/null", "w") as out:
        print(names, file=out)
    return total
