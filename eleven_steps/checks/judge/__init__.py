"""What judges an answer: one trace, one reading of it, and findings that are asked for again.

Comparing enters, and asking again. No sentence does: know has them.
"""
