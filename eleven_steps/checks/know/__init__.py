"""What is right, which mistakes there are, and every sentence that a learner can be told."""
