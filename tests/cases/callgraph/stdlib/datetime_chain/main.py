from datetime import datetime, timedelta


def later(minutes):
    now = datetime.now()
    delta = timedelta(minutes=minutes)
    delta.total_seconds()
    return now.isoformat()


later(3)
