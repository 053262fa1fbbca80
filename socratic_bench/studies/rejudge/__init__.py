"""Stored runs judged again, by another judge, jury or edition; the first verdicts stay."""
