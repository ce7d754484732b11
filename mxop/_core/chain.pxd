cpdef list gradients_at(object op, object F, object attrs, list heads, list inputs, list outputs, list needed, object told)
cpdef list checked(str who, object found, list inputs, list needed, str at)
