"""What is asked, what is right, and what each usual slip gives instead.

An exercise of a notebook enters, with its slips. How an answer is compared never does.
"""
