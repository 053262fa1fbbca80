"""Which version of the AWS SDK sends the requests."""

import botocore


def sdk_version() -> str:
    """Its core, which shapes and signs them: boto3 is a thin layer over it."""
    return f"botocore {botocore.__version__}"
