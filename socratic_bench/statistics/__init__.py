"""What repeated runs say, and how far it can be trusted: arithmetic on plain numbers.

Runs are clustered: those of one sample (the same opening, say) are more alike than those of
several. The extra `stats` is needed by `quantiles`, `bootstrap` and `bootstrap_t` (scipy, and numpy
with it), and by `agreement` (krippendorff).
"""
