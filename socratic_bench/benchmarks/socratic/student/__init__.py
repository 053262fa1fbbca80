"""Who answers the tutor: a scripted student that costs nothing, or a model that plays one.

`scripted.ScriptedStudent` and `model` reply to the tutor in one of `voices`; `pressure` says when a
student presses.
"""
