"""Ask a learner's code: nothing here knows what is right, so all of it may travel to a sandbox."""
