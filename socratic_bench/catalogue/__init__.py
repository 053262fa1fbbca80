"""What is known of models before one is called: what they take, how they think, what they cost."""
