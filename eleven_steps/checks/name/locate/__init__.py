"""Follow a recorded forward to the first step that is not right."""
