"""Stores what a run makes, while it is played: in a folder, a bucket, or both."""
