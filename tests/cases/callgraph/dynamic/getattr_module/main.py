import actions

start = getattr(actions, "start")
start()
