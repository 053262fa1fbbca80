"""Calls to models: how one is made (`call`), paced, paid for, ended, and what hears of it.

A provider, such as `bedrock`, sends the requests. `rate_limiter.RateTargets` and
`cancel.CancelToken` are for whoever runs several dialogues at once.
"""
