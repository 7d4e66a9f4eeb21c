def execute(job):
    return job()
