from left import work as back
