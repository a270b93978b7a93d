"""Compare, locate, say: from what an answer did to the name of its mistake."""
