"""Judge stored runs again, by another judge, jury or rubric; the first verdicts stay."""
