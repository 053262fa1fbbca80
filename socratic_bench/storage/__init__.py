"""Keeps what a run makes, beside the dialogue: a folder, a bucket, or both."""
