"""Calibrate judges against people's labels, correct figures by labels, and collect labels."""
