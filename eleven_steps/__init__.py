"""The course's own library: checks that name mistakes, pictures, sliders, and what goes beyond."""
