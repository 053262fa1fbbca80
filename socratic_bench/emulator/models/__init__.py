"""The simulated models: tutors, students and a judge, each a function of the request alone."""
