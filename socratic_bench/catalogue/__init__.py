"""What is known of models without a call: what they take, what they cost, token bounds."""
