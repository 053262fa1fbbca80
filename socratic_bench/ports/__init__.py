"""The interfaces between a run and what it is made of: benchmarks, models, providers, stores."""
