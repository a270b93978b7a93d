"""Attention as it stands elsewhere, built, filled and called as the lecture's class is.

A way of building or calling enters once a package has it. What is right or wrong never does.
"""
