"""What mxop offers to compiled libraries, and how what they hand over is read."""
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from mxop._core.abi cimport (
    MXOP_ABI_VERSION, MXOP_FEATURE_OPERATORS, MXOP_FEATURE_PARTITIONERS, MXOP_FEATURE_PASSES, MXOP_GPU, MXOPHost,
)

from mxop.support.errors import MXNetError

cdef extern from *:
    """
    #include <stdlib.h>
    #include <string.h>
    #if defined(_MSC_VER)
    #define MXOP_THREAD static __declspec(thread)
    #else
    #define MXOP_THREAD static __thread
    #endif

    /* What the running thread's library function said before it failed. */
    #define MXOP_LONGEST_ERROR 16384
    MXOP_THREAD char *mxop_text = NULL;
    MXOP_THREAD size_t mxop_length = 0;

    static void mxop_error(const char *text)
    {
        size_t more;
        if (text == NULL)
            return;
        if (mxop_text == NULL) {
            mxop_text = (char *)malloc(MXOP_LONGEST_ERROR + 2);
            mxop_length = 0;
        }
        if (mxop_text == NULL)
            return;
        if (mxop_length > 0 && mxop_length < MXOP_LONGEST_ERROR)
            mxop_text[mxop_length++] = '\\n';
        more = strnlen(text, MXOP_LONGEST_ERROR - mxop_length);
        memcpy(mxop_text + mxop_length, text, more);
        mxop_length += more;
    }
    static const char *mxop_error_text(void) { return mxop_text; }
    static size_t mxop_error_take(void)
    {
        size_t length = mxop_length;
        mxop_length = 0;
        return length;
    }

    /* Memory in front of which the next chunk's address stands, aligned for any element type. */
    static void *mxop_chunk(void **chunks, size_t bytes)
    {
        char *chunk = (char *)malloc(bytes + 128), *data;
        if (chunk == NULL)
            return NULL;
        *(void **)chunk = *chunks;
        *chunks = chunk;
        data = chunk + 64;
        return data + (64 - (size_t)data % 64) % 64;
    }
    static void mxop_free_chunks(void **chunks)
    {
        while (*chunks != NULL) {
            void *next = *(void **)*chunks;
            free(*chunks);
            *chunks = next;
        }
    }
    """
    void mxop_error(const char* text) noexcept nogil
    const char* mxop_error_text() noexcept nogil
    size_t mxop_error_take() noexcept nogil
    void* mxop_chunk(void** chunks, size_t nbytes) noexcept nogil
    void mxop_free_chunks(void** chunks) noexcept nogil
    size_t strnlen(const char* text, size_t longest) noexcept nogil

MXNET_VERSION = 10901       # of the API that lib_api.h imitates
FEATURES = MXOP_FEATURE_OPERATORS | MXOP_FEATURE_PASSES | MXOP_FEATURE_PARTITIONERS

cdef MXOPHost _host
cdef bytes _version = b""
cdef uint64_t _seed = 0, _seed_version = 1


cdef void* alloc(void* call, int64_t nbytes, int32_t device) noexcept nogil:
    cdef Memory* memory = <Memory*>call
    if memory == NULL or nbytes < 0 or nbytes > <int64_t>1 << 48:
        return NULL
    if device == MXOP_GPU:
        return alloc_gpu(memory, nbytes)
    return mxop_chunk(&memory.chunks, <size_t>nbytes)


cdef void* alloc_gpu(Memory* memory, int64_t nbytes) noexcept with gil:
    if memory.gpu == NULL:
        return NULL
    try:
        import cupy

        (<list>memory.gpu).append(cupy.cuda.alloc(nbytes))
        return <void*><size_t>(<list>memory.gpu)[-1].ptr
    except Exception as problem:
        text = str(problem).encode()
        mxop_error(text)
        return NULL


cdef MXOPHost* host() noexcept:
    """Return what libraries are told of mxop."""
    return &_host


def set_version(str version):
    """Fill in what libraries are told of mxop."""
    global _version
    _version = version.encode()
    memset(&_host, 0, sizeof(_host))
    _host.struct_size, _host.abi_version, _host.features = sizeof(_host), MXOP_ABI_VERSION, FEATURES
    _host.mxnet_version, _host.version = MXNET_VERSION, _version
    _host.error, _host.alloc = mxop_error, alloc


def set_seed(seed):
    """Seed the random numbers that libraries draw."""
    global _seed, _seed_version
    _seed = <uint64_t>(int(seed) & 0xFFFFFFFFFFFFFFFF)
    _seed_version += 1


cdef void seed_of(uint64_t* seed, uint64_t* version) noexcept:
    seed[0], version[0] = _seed, _seed_version


cdef str failure():
    """Return what the library said about the failure, and forget it."""
    cdef size_t length = mxop_error_take()
    if length == 0:
        return "it gave no reason (MX_ERROR_MSG << \"...\" gives one)"
    return mxop_error_text()[:length].decode("utf-8", "replace").strip()


cdef void free_memory(Memory* memory) noexcept:
    mxop_free_chunks(&memory.chunks)


cdef int copy_table(const char* given, char* own, Py_ssize_t size, Py_ssize_t least, str what) except -1:
    """Copy what a library knows of a table, which begins with its size; the rest becomes zero."""
    cdef uint32_t known
    if given == NULL:
        raise MXNetError(f"{what} is missing")
    memcpy(&known, given, sizeof(known))
    if known < least or known > 1 << 16:
        raise MXNetError(f"{what} says that it has {known} bytes; expected {least} or more")
    memset(own, 0, size)
    memcpy(own, given, min(<Py_ssize_t>known, size))
    return 0


cdef str table_text(const char* text, Py_ssize_t longest, str what):
    """Read a string of a library's."""
    if text == NULL:
        raise MXNetError(f"{what} is missing")
    cdef Py_ssize_t length = strnlen(text, longest + 1)
    if length > longest:
        raise MXNetError(f"{what} is longer than {longest} bytes: {text[:60]!r}...")
    try:
        return text[:length].decode("utf-8")
    except UnicodeDecodeError:
        raise MXNetError(f"{what} is no text: {text[:min(length, 60)]!r}") from None
