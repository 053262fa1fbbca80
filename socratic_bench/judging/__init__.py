"""Has a judge model score a reply against a rubric; for any rubric, knowing no benchmark."""
