"""Ask a learner's code: build it, run it, record what it makes.

Nothing that knows what is right enters, so all of it may travel to a sandbox.
"""
