"""What the notebooks of Eleven Steps to Multi-Head Attention import, one file per purpose."""
