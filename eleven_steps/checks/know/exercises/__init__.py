"""What is asked, what is right, and what each usual slip gives instead."""
