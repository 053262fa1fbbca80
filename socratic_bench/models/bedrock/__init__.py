"""Calls models by Converse on Amazon Bedrock; retries are ours, not the SDK's."""
