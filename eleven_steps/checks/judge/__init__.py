"""What judges an answer: one trace, one reading of it, and findings that are asked for again.

Comparing enters. No sentence does (know has them), and no call of an answer (run makes them).
"""
