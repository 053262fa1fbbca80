from workload import play  # isort: skip

from textkit.clean import mask


def make_input(random, size):
    words = [f"bad{random.randrange(9 * size)}" for _ in range(20)]
    lines = [f"line {n} has {random.choice(words)} in it" for n in range(size)]
    return lines, words


def work(given):
    return mask(*given)


if __name__ == "__main__":
    play(make_input, work)
