"""Stored runs side by side: read (`places`, `stored_run`), checked (`conditions`), grouped by model
(`contenders`), paired (`pairing`), held to a baseline (`drops`), and told (`comparing`).
"""
