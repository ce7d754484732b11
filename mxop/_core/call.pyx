"""What executors are made of: a call whose inference and allocation are done.  May import nothing."""


cdef class Call:
    """A call that is ready; ``run()`` executes it."""

    cdef int execute(self) except -1:
        return 0

    def run(self):
        """Execute the call once."""
        self.execute()
