"""What judges an answer: one trace, one reading of it, and claims that are asked again."""
