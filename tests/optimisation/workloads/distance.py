from workload import play


def make_input(random, size):
    return "".join(random.choice("ab") for _ in range(size)), ["a", "b", "ab", "ba", "aa", "bb"]


def work(given):
    from textkit.distance import ways

    return ways(*given)


if __name__ == "__main__":
    play(make_input, work)
