"""Who answers the tutor: a scripted student that costs nothing, or a model that plays one."""
