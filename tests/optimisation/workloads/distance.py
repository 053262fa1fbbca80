from workload import play  # isort: skip

from textkit.distance import ways


def make_input(random, size):
    return "".join(random.choice("ab") for _ in range(size)), ["a", "b", "ab", "ba", "aa", "bb"]


def work(given):
    return ways(*given)


if __name__ == "__main__":
    play(make_input, work)
