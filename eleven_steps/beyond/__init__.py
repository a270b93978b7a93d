"""What only later notebooks use: changes since the lecture, processes, a tiny model, real sizes."""
