# ruff: noqa: INP001 -- a script of the image's build, not a part of a package
"""Makes a bucket in the S3 stand-in, or lists what a run has left in it.

    python bucket.py make|list NAME

The endpoint and the stand-in keys come from the AWS_* variables.
"""

import sys
from typing import Any

import boto3


def main(verb: str, name: str) -> None:
    s3 = boto3.client("s3")
    if verb == "make":
        s3.create_bucket(Bucket=name)
        return
    for key in _keys(s3, name):
        sys.stdout.write(f"s3://{name}/{key}\n")


def _keys(s3: Any, name: str) -> list[str]:  # noqa: ANN401 -- the SDK makes its clients at run time
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=name)
    return [entry["Key"] for page in pages for entry in page.get("Contents", [])]


if __name__ == "__main__":
    main(*sys.argv[1:])
