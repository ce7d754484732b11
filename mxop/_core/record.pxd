from mxop._core.array cimport Array, Node

cdef bint is_recording() noexcept nogil
cdef bint is_noted() noexcept
cdef bint is_training() noexcept nogil
cdef bint set_recording(bint value) noexcept nogil
cdef bint set_training(bint value) noexcept nogil
cdef bint any_node(object inputs) noexcept
cdef Node new_node(object op, object inputs, list outputs)
cdef int link_outputs(Node node, list outputs) except -1
cdef int note_overwritten(Node node, list outputs) noexcept
cdef int record_general(object op, object attrs, object inputs, list outputs) except -1
