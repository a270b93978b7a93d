"""What judges an answer: one trace, one reading of it, and claims that are asked again.

Comparing enters. No sentence does (know has them), and no call of an answer (run makes them).
"""
