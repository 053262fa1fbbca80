"""What repeated runs say, and how far it can be trusted: arithmetic on plain numbers.

Runs are clustered: those of one sample (the same opening, say) are more alike than those of
several. Only `quantiles` and `bootstrap` need the extra `stats`: scipy, and numpy with it.
"""
