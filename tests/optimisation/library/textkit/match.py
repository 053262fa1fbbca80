"""Compares collections of words."""


def common(first, second):
    """The words of the first collection that are in the second one, in order, once each."""
    result = []
    for word in first:
        is_known = False
        for other in second:
            if other == word:
                is_known = True
                break
        is_new = True
        for earlier in result:
            if earlier == word:
                is_new = False
                break
        if is_known and is_new:
            result.append(word)
    return result
