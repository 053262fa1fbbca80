from workload import play  # isort: skip

from textkit.render import number


def make_input(random, size):
    return [f"row {random.randrange(1000)}" for _ in range(size)]


def work(given):
    return number(given)


if __name__ == "__main__":
    play(make_input, work)
