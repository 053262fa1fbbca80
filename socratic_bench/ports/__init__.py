"""The interfaces between a run and its parts, by which these know nothing of each other.

`benchmark` and `parts`: what is played, and what it adds to documents and reports; `provider`: who
answers; `store`: where files and journals are kept.
"""
