"""The benchmark `socratic`: dialogues of a tutor under test with a student, judged turn by turn.

`benchmark` is what a run plays, `episode` plays it; `student` answers the tutor, `scenarios` says
who it is; `closing` asks about the dialogue as a whole, `metrics` sums it up.
"""
