"""The benchmark `golden`: prompts with golden answers, checked by rules and scored by judges.

`rows` reads data sets, `checks` are the rules, `judging` says what is asked and what passes.
"""
