"""What only later notebooks use: changes since the lecture, processes, a tiny model, real sizes.

What computes enters, in torch alone. What judges, draws a new kind of picture or moves never does.
"""
