"""What judges an answer: one trace, one reading of it, and findings that are asked for again.

What compares, and what asks again, may enter. No sentence ever does: they stand in know.
"""
