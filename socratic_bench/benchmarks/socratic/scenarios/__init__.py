"""Students to teach: the built-in scenarios, one for any prompt, a teacher's own files.

`loading` reads them as `scenario.Scenario`, `check` finds what is wrong in one, `listing` is what
`socratic-runner scenarios` prints.
"""
