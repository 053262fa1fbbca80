from workload import play


def make_input(random, size):
    words = [f"bad{random.randrange(9 * size)}" for _ in range(20)]
    lines = [f"line {n} has {random.choice(words)} in it" for n in range(size)]
    return lines, words


def work(given):
    from textkit.clean import mask

    return mask(*given)


if __name__ == "__main__":
    play(make_input, work)
