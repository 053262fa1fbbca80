"""Where runs are stored: in a folder, in an S3 bucket, or in both.

`stores` opens what a configuration names; `delivery` writes files in the background; journals are
locked by a file's lock or by a lease in the bucket. Only `s3` and what imports it load the SDK.
"""
