"""What is known of models without a call.

`models`: what each family takes; `prices`: what calls cost, also by a user's `price_file`;
`tokens`: how many tokens a request has at most.
"""
