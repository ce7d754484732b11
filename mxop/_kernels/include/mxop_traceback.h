/* Tracebacks without frames of compiled code, whose sources are not installed.
 *
 * Included before every compiled module (setup.py).  Cython calls PyTraceBack_Here where an error leaves one of its functions and
 * where it is caught in one, so nothing here runs where there is no error.
 */
#ifndef MXOP_TRACEBACK_H
#define MXOP_TRACEBACK_H

#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

/* Of mxop.support.errors: the class, the function (None for full tracebacks), and a traceback that stands for none. */
static PyObject *mxop_raised, *mxop_shortened, *mxop_nowhere;

static int mxop_found_errors(void) {
    PyObject *errors;
    if (mxop_nowhere != NULL) return 1;
    errors = PyImport_ImportModule("mxop.support.errors");
    if (errors != NULL) {
        mxop_raised = PyObject_GetAttrString(errors, "MXNetError");
        mxop_shortened = PyObject_GetAttrString(errors, "in_compiled_code");
        if (mxop_raised != NULL && mxop_shortened != NULL) mxop_nowhere = PyObject_GetAttrString(errors, "nowhere");
        Py_DECREF(errors);
    }
    PyErr_Clear();
    return mxop_nowhere != NULL;
}

/* Add a frame for full tracebacks; otherwise drop mxop's own frames from the traceback of an MXNetError. */
static int mxop_unwound(PyFrameObject *frame) {
    PyObject *type, *value, *trace, *done;
    PyErr_Fetch(&type, &value, &trace);
    if (!mxop_found_errors() || mxop_shortened == Py_None) {
        PyErr_Restore(type, value, trace);
        return PyTraceBack_Here(frame);
    }
    if (trace == mxop_nowhere) {
        Py_CLEAR(trace);
        if (value != NULL && PyExceptionInstance_Check(value)) /* from Python 3.14 on, PyErr_Restore leaves the one that it has */
            PyException_SetTraceback(value, Py_None);
    }
    if (trace != NULL && PyErr_GivenExceptionMatches(type, mxop_raised)) {
        PyErr_NormalizeException(&type, &value, &trace);
        PyException_SetTraceback(value, trace);
        done = PyObject_CallFunctionObjArgs(mxop_shortened, value, NULL);
        Py_XDECREF(trace);
        if (done == NULL) { /* an interrupt from the keyboard, say: that is what is raised now */
            Py_DECREF(type);
            Py_DECREF(value);
            PyErr_Fetch(&type, &value, &trace);
        } else {
            Py_DECREF(done);
            trace = PyException_GetTraceback(value);
        }
    }
    PyErr_Restore(type, value, trace);
    return 0;
}

/* Where Cython catches an error it needs a traceback. */
static void mxop_normalize(PyObject **type, PyObject **value, PyObject **trace) {
    PyErr_NormalizeException(type, value, trace);
    if (*type != NULL && *trace == NULL && mxop_found_errors()) {
        Py_INCREF(mxop_nowhere);
        *trace = mxop_nowhere;
    }
}

static PyObject *mxop_traceback_of(PyObject *value) {
    PyObject *trace = PyException_GetTraceback(value);
    if (trace == NULL && mxop_found_errors()) {
        trace = mxop_nowhere;
        Py_INCREF(trace);
    }
    return trace;
}

#define PyTraceBack_Here mxop_unwound
#define PyErr_NormalizeException mxop_normalize
#define PyException_GetTraceback mxop_traceback_of
#endif
