"""Attention as it stands elsewhere, built, filled and called as the lecture's class is."""
