words = ["b", "a"]
letters = {word[0] for word in words}
index = {word: place for place, word in enumerate(words) if word in letters}
