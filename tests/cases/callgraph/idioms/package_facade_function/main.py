import store

store.get("k")
