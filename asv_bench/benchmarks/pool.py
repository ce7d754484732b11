"""The memory pool: allocation of new and of waiting memory, and what stays after training steps."""

import numpy as np

import mxop as mx
from mxop import autograd, nd

from .timed import timed


@timed
class Allocate:
    """Arrays that are made and dropped."""

    params = ([8, 10_000, 1_000_000, 30_000_000],)
    param_names = ("bytes",)

    def setup(self, nbytes):
        nd.empty((nbytes,), dtype="uint8")

    def expected(self, name, nbytes):
        return [np.zeros(nbytes)] if name.endswith("written") else None  # what is not written holds anything

    def time_reused(self, nbytes):
        return nd.empty((nbytes,), dtype="uint8")

    def time_fresh(self, nbytes):
        nd.empty((nbytes,), dtype="uint8")
        mx.context.empty_cache()

    def time_reused_and_written(self, nbytes):
        return nd.zeros((nbytes,), dtype="uint8")

    def time_numpy_written(self, nbytes):
        written = np.zeros(nbytes, np.uint8)
        written.fill(0)
        return written


class Training:
    """Memory of a small training loop."""

    def setup(self):
        mx.context.empty_cache()
        self.x, self.w = nd.ones((64, 256)), nd.ones((128, 256))
        self.w.attach_grad()

    def step(self):
        with autograd.record():
            loss = nd.sum(nd.tanh(nd.FullyConnected(self.x, self.w, num_hidden=128, no_bias=True)))
        loss.backward()

    def track_in_use(self):
        for _ in range(20):
            self.step()
        return mx.context.memory_stats()["in_use"]

    def track_misses(self):
        self.step()
        before = mx.context.memory_stats()["misses"]
        for _ in range(100):
            self.step()
        return mx.context.memory_stats()["misses"] - before

    def peakmem_steps(self):
        for _ in range(20):
            self.step()


Training.track_in_use.unit = "bytes"
Training.track_misses.unit = "allocations"
