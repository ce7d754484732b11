"""Squared hinge loss as MXNet's CustomOp: two classes, operators of mx.nd inside."""

import mxop as mx
from mxop import nd


class SquaredHinge(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        data, label = in_data
        self.assign(out_data[0], req[0], nd.square(nd.maximum(1 - label * data, 0)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        data, label = in_data
        slope = -2 * nd.maximum(1 - label * data, 0) * out_grad[0]
        self.assign(in_grad[0], req[0], slope * label)
        self.assign(in_grad[1], req[1], slope * data)


@mx.operator.register("squared_hinge")
class SquaredHingeProp(mx.operator.CustomOpProp):
    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0]] * 2, [in_shape[0]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return SquaredHinge()


def call(data, label):
    return nd.Custom(data, label, op_type="squared_hinge")
