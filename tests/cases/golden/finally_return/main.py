def shadow(jobs):
    for job in jobs:
        try:
            return job()
        finally:
            if job:
                continue
            print("leave")
