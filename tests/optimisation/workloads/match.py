from workload import play


def make_input(random, size):
    return [[f"w{random.randrange(size)}" for _ in range(size)] for _ in range(2)]


def work(given):
    from textkit.match import common

    return common(*given)


if __name__ == "__main__":
    play(make_input, work)
