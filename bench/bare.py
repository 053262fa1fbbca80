"""The least that a user of the SDK does: import boto3, make one client, call Converse once.

This is what the command is measured against. It is written as anyone would write it.
"""

import boto3

client = boto3.client("bedrock-runtime", region_name="us-east-1")
client.converse(
    modelId="bench.tutor-v1:0",
    messages=[{"role": "user", "content": [{"text": "I am stuck."}]}],
)
