"""Golden sets and recorded replies: reading and writing files, each mistake with its file and line."""
