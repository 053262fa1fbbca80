"""Stored runs side by side: `compare`, and the document that it prints."""
