"""What a process that runs a submission may import: questions, sizes and copies.

Nothing in this folder knows a right value or an answer, and nothing of checks is imported here.
"""
