"""A judge held to what people say: their labels are judged by the ordinary engine and compared."""
