"""Statistics of repeated runs, as functions of plain numbers.

Runs come in clusters: those of one scenario, say, are more alike than those of several. The extra
`stats` is needed for p values and powers (`intervals`: scipy), limits of times (`bootstrap`: numpy)
and Krippendorff's alpha (`agreement`).
"""
