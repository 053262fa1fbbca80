"""The benchmark `optimisation`: make a git repository faster, measured against the human who did.

`task` and `plan` say what is asked; `repository` runs git where no agent can reach it; `isolation`
confines the commands of agents, tests and workloads. `validate` and `evaluate` measure.
"""
