"""What stored runs come to, for readers: read (`reading`) into frozen rows (`rows`)."""
