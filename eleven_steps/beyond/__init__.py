"""Code that only later notebooks use: newer variants, processes, a tiny model, real sizes.

This room holds computations in torch. It holds no checks, no new kinds of pictures, no widgets.
"""
