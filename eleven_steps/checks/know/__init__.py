"""What is right, which mistakes there are, and every sentence that a learner can be told.

Each stands once. Nothing here looks at an answer, and nothing of it travels to a sandbox.
"""
