"""Who answers the tutor: a scripted student that costs nothing, or a model that plays one.

The scripted ones are in `scripted` and `first_edition`, which are imported once one has to speak.
"""
