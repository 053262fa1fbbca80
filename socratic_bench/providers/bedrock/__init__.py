"""The only way to a model: Converse on Amazon Bedrock, with our retries and nobody else's."""
