"""Arrays, dispatch and the tape, compiled."""
