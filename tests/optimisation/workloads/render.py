from workload import play


def make_input(random, size):
    return [f"row {random.randrange(1000)}" for _ in range(size)]


def work(given):
    from textkit.render import number

    return number(given)


if __name__ == "__main__":
    play(make_input, work)
