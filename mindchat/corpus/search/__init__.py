"""What a search does beyond scoring words: reading the query, names that no document has."""
