"""How a model is named: by its own id, by an inference profile of some region, or by an ARN."""

# What an inference profile's id has before the model's own: a region, or many of them.
PROFILE_PREFIXES = frozenset(
    ("af", "apac", "au", "ca", "eu", "global", "il", "in", "jp", "me", "mx", "sa", "us", "us-gov")
)


def base_id(model_id: str) -> str:
    """The model's own id: without the ARN around it and the profile's region before it."""
    name = model_id.partition("/")[2] if model_id.startswith("arn:") else model_id
    prefix, _, rest = name.partition(".")
    return rest if prefix in PROFILE_PREFIXES else name
