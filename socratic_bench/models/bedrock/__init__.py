"""Amazon Bedrock as a provider: `module.PROVIDER` is all that others need of it.

A request is shaped (`request`), sent and read (`converse`) through one client (`session`) with
credentials that are looked up apart from it (`credentials`); errors get a kind (`errors`). Retries
are the run's, not the SDK's.
"""
