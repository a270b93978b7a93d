"""What judges an answer: one trace, one reading of it, and findings that are asked for again.

What compares, and what asks again, may enter. No sentence ever does: they stand in know, and only
a clause that is put together of what was measured is made here.
"""
