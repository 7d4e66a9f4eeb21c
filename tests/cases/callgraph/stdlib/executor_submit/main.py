from concurrent.futures import ThreadPoolExecutor


def work(n):
    return helper(n)


def helper(n):
    return n


def run():
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work, 1)
        results = pool.map(work, [1, 2])
    return future.result(), list(results)


run()
