# How windows lie in images, as products are told; see mxop_windows.h.
from mxop._kernels.instruction_sets cimport mx_load

cdef extern from "mxop_windows.h" nogil:
    ctypedef struct mx_images:
        const char* data
        Py_ssize_t image, channel
        Py_ssize_t element[3]
        Py_ssize_t size[3]
        Py_ssize_t found[3]
        Py_ssize_t kernel[3]
        Py_ssize_t stride[3]
        Py_ssize_t dilate[3]
        Py_ssize_t pad[3]
        mx_load load


cdef inline int read_images(tuple windows, Py_ssize_t size, mx_images* images) except -1:
    """Read how windows lie in images of elements of a size: strides ``(image, channel, element...)`` of the images in elements,
    and for each dimension, of three, sizes, how many windows there are, kernel, stride, dilate and pad.
    """
    cdef Py_ssize_t k
    images.image, images.channel, *elements = [stride * size for stride in windows[0]]
    for k in range(3):
        images.element[k] = elements[k]
        images.size[k], images.found[k], images.kernel[k], images.stride[k], images.dilate[k], images.pad[k] = [
            numbers[k] for numbers in windows[1:]]
    return 0
