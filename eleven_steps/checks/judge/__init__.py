"""What judges: a class is asked, what it gives is compared, and only what holds is said."""
