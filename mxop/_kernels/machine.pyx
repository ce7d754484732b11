"""What is known of machines: the numbers of ``include/mxop_machine.h``, and what the system says of this one."""


def _last_cache():
    """Return the bytes of the last-level cache that the first processor has, 0 where the system does not say.

    What the C library says is that of all processors of a package together, a dozen times as much where each few have their own.
    """
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as file:
            return int(file.read().removesuffix("K\n")) << 10
    except (OSError, ValueError):
        return 0


_cache = _last_cache()
#: Half of the bytes read and written from which on results are written by non-temporal stores: of copies (and of halves, whose loops
#: prefetch), of what is computed, and of costly functions, for their results are copied by a core that is busy.  Where the last
#: cache holds several times as much, a few cores are faster through it: many share it, and one core waits long for memory.
STREAM_BYTES = tuple([max(MX_STREAM_BYTES, _cache // 20), max(MX_STREAM_BYTES, _cache // 10), max(3 * MX_STREAM_BYTES, _cache // 10)])
