from workload import play  # isort: skip

from textkit.match import common


def make_input(random, size):
    return [[f"w{random.randrange(size)}" for _ in range(size)] for _ in range(2)]


def work(given):
    return common(*given)


if __name__ == "__main__":
    play(make_input, work)
