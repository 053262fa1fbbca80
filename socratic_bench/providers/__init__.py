"""Where models are reached: one module for each service."""
