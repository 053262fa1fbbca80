"""Stored runs side by side: read (`places`, `stored_run`, `reading`), grouped by model, with what
was not alike in them (`contenders`), paired (`pairing`), reckoned (`figures`, `times`), held to a
baseline (`drops`), told (`telling`), and all of it in order (`comparing`).
"""
