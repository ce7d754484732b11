"""Formulas of the pages of operators, as Python expressions that `mathematics.py` turns into MathML.

The names are those of arguments and parameters, of indices, and of sizes: an image has `h` rows, the result `H`.
"""

from __future__ import annotations


def _of_copies(lines: list[str]) -> list[str]:
    """Return formulas of weights as those of their float32 copies, from which the weights are rounded."""
    return [*(line.replace("weight", "weight32") for line in lines), "weight[k] = weight32[k]"]


LEVELS, HALF_LEVELS = ("L = where(out_type == 'int8', {}, {})".format(*n) for n in ((127, 255), (127.5, 255.5)))
REACH = "r = maximum(abs(min_range), abs(max_range))"
TENT = "k(a) = maximum(1 - abs(a), 0)"  # weights of linear interpolation
CONVOLUTION = "sum((c,q), weight[f,c,q]*data[n,c,stride*p + dilate*q - pad])"
POOLING = [
    "maximum[n,c,p] = max(q, data[n,c,stride*p + q - pad])",
    "average[n,c,p] = 1/K*sum(q, data[n,c,stride*p + q - pad])",
]
NORM = "y = gamma*(data - mu)/sqrt(sigma**2 + eps) + beta"
LIGHT = "l = 0.299*data[0] + 0.587*data[1] + 0.114*data[2]"
PROPOSAL = [
    "y[k] = m[k] - (w[k] - 1)/2",
    "y[k+2] = m[k] + (w[k] - 1)/2",
    "m[k] = a[k] + bbox_pred[k]*s[k]",
    "w[k] = s[k]*exp(bbox_pred[k+2])",
    "kept[i] = prod(j < i, 1 - kept[j]*where(iou(i,j) > threshold, 1, 0))",
]
LAMB = [
    "mean = beta1*mean + (1 - beta1)*grad",
    "var = beta2*var + (1 - beta2)*grad**2",
    "g = mean/(1 - beta1**t)/(sqrt(var/(1 - beta2**t)) + epsilon) + wd*weight",
]
MULTI = ["weight[k] = weight[k] - lrs[k]*(grad[k] + wds[k]*weight[k])"]
MULTI_MOM = ["mom[k] = momentum*mom[k] - lrs[k]*(grad[k] + wds[k]*weight[k])", "weight[k] = weight[k] + mom[k]"]
UNIFORM = ["p(y) = 1/(high - low)"]
EXPONENTIAL = ["p(y) = lam*exp(-lam*y)"]
GAMMA = ["p(y) = y**(alpha - 1)*exp(-y/beta)/(gamma(alpha)*beta**alpha)"]
POISSON = ["P(y) = lam**y*exp(-lam)/gamma(y + 1)"]
FAILURES = ["P(y) = gamma(y + k)/(gamma(y + 1)*gamma(k))*p**k*(1 - p)**y"]
MEAN_AND_DISPERSION = ["k = 1/alpha", "p = 1/(1 + mu*alpha)"]
DRAWN = {
    "exponential": EXPONENTIAL, "gamma": GAMMA, "negative_binomial": FAILURES, "poisson": POISSON, "uniform": UNIFORM,
    "generalized_negative_binomial": [*FAILURES, *MEAN_AND_DISPERSION],
}  # fmt: skip

#: What operators compute that are not formulas of one element, by the names of their functions.
FORMULAS: dict[str, list[str]] = {
    # ---- activations and layers
    "Activation": [
        "relu = maximum(data, 0)",
        "sigmoid = 1/(1 + exp(-data))",
        "tanh = tanh(data)",
        "softrelu = log(1 + exp(data))",
        "softsign = data/(1 + abs(data))",
    ],
    "LeakyReLU": [
        "leaky = where(data > 0, data, slope*data)",
        "elu = where(data > 0, data, slope*(exp(data) - 1))",
        "gelu = data/2*(1 + erf(data/sqrt(2)))",
        "selu = 1.0507*where(data > 0, data, 1.6733*(exp(data) - 1))",
        "prelu = where(data > 0, data, gamma*data)",
    ],
    "sigmoid": ["y = 1/(1 + exp(-data))"],
    "log_sigmoid": ["y = -log(1 + exp(-data))"],
    "softsign": ["y = data/(1 + abs(data))"],
    "softmax": ["y[i] = exp(data[i]/temperature)/sum(j, exp(data[j]/temperature))"],
    "softmin": ["y[i] = exp(-data[i]/temperature)/sum(j, exp(-data[j]/temperature))"],
    "log_softmax": ["y[i] = data[i]/temperature - log(sum(j, exp(data[j]/temperature)))"],
    "SoftmaxActivation": ["y[i] = exp(data[i])/sum(j, exp(data[j]))"],
    "softmax_cross_entropy": ["y = -sum(n, log(softmax(data[n])[label[n]]))"],
    "FullyConnected": ["y[n,i] = sum(k, data[n,k]*weight[i,k]) + bias[i]"],
    "Embedding": ["y[i] = weight[data[i]]"],
    "Dropout": ["y = cases(u >= p, data/(1 - p), 0)"],
    "RNN": ["h[t] = tanh(W*x[t] + b + R*h[t-1] + r)"],
    # ---- convolution and pooling
    "Convolution": [f"y[n,f,p] = bias[f] + {CONVOLUTION}"],
    "Deconvolution": ["y[n,f,s] = bias[f] + sum((c, stride*p + dilate*q - pad == s), data[n,c,p]*weight[c,f,q])"],
    "Pooling": POOLING,
    "im2col": ["y[n,(c,q),p] = data[n,c,stride*p + dilate*q - pad]"],
    # ---- normalization
    "LayerNorm": [NORM, "mu = 1/n*sum(i, data[i])", "sigma**2 = 1/n*sum(i, (data[i] - mu)**2)"],
    "BatchNorm": [NORM, "moving_mean = momentum*moving_mean + (1 - momentum)*mu"],
    "GroupNorm": [NORM],
    "InstanceNorm": [NORM],
    "L2Normalization": ["y = data/sqrt(sum(i, data[i]**2) + eps)"],
    "LRN": ["y[c] = data[c]/(knorm + alpha/nsize*sum(j, data[j]**2))**beta"],
    # ---- reductions
    "sum": ["y = sum(i, data[i])"],
    "mean": ["y = 1/n*sum(i, data[i])"],
    "prod": ["y = prod(i, data[i])"],
    "nansum": ["y = sum(i, where(data[i] == data[i], data[i], 0))"],
    "nanprod": ["y = prod(i, where(data[i] == data[i], data[i], 1))"],
    "max": ["y = max(i, data[i])"],
    "min": ["y = min(i, data[i])"],
    "argmax": ["y = argmax(i, data[i])"],
    "argmin": ["y = argmin(i, data[i])"],
    "norm": ["y = sqrt(sum(i, data[i]**2))"],
    "moments": ["mean = 1/n*sum(i, data[i])", "variance = 1/n*sum(i, (data[i] - mean)**2)"],
    "multi_sum_sq": ["y[k] = sum(i, data[k,i]**2)"],
    "cumsum": ["y[i] = sum(j <= i, data[j])"],
    # ---- matrices
    "dot": ["y[i,j] = sum(k, lhs[i,k]*rhs[k,j])"],
    "batch_dot": ["y[b,i,j] = sum(k, lhs[b,i,k]*rhs[b,k,j])"],
    "matmul": ["y[b,i,j] = sum(k, lhs[b,i,k]*rhs[b,k,j])"],
    "einsum": ["y[i,j] = sum(k, a[i,k]*b[k,j])"],
    "linalg.gemm": ["y = alpha*A*B + beta*C"],
    "linalg.gemm2": ["y = alpha*A*B"],
    "linalg.syrk": ["y = alpha*A*T(A)"],
    "linalg.trmm": ["y = alpha*A*B"],
    "linalg.trsm": ["y = alpha*inverse(A)*B"],
    "linalg.potrf": ["A = L*T(L)"],
    "linalg.potri": ["y = inverse(A*T(A))"],
    "linalg.det": ["y = det(A)"],
    "linalg.inverse": ["y = inverse(A)"],
    "linalg.slogdet": ["sign = det(A)/abs(det(A))", "logabsdet = log(abs(det(A)))"],
    "linalg.sumlogdiag": ["y = sum(i, log(A[i,i]))"],
    "linalg.gelqf": ["A = L*Q", "Q*T(Q) = 1"],
    "linalg.syevd": ["A = T(U)*diag(L)*U"],
    "khatri_rao": ["y[(i,j),k] = a[i,k]*b[j,k]"],
    # ---- shapes and indices
    "transpose": ["y[j,i] = data[i,j]"],
    "diag": ["y[i] = data[i,i+k]"],
    "take": ["y[i] = a[indices[i]]"],
    "pick": ["y[i] = data[i,index[i]]"],
    "one_hot": ["y[i,k] = where(indices[i] == k, on_value, off_value)"],
    "where": ["result = where(condition != 0, x, y)"],
    "gather_nd": ["y[i] = data[indices[0,i], indices[1,i]]"],
    "batch_take": ["y[i] = a[i,indices[i]]"],
    "SwapAxis": ["y[j,i] = data[i,j]"],
    "reverse": ["y[i] = data[n - 1 - i]"],
    "repeat": ["y[i] = data[floor(i/repeats)]"],
    "tile": ["y[i] = data[mod(i, n)]"],
    "stack": ["y[k,i] = data[k][i]"],
    "linalg.makediag": ["y[i,i+offset] = A[i]"],
    "linalg.extractdiag": ["y[i] = A[i,i+offset]"],
    "UpSampling": ["y[n,c,i,j] = data[n,c,floor(i/scale),floor(j/scale)]"],
    "slice_axis": ["y[i] = data[begin + i]"],
    # ---- losses
    "LinearRegressionOutput": ["y = data", "gradient = grad_scale/m*(data - label)"],
    "MAERegressionOutput": ["y = data", "gradient = grad_scale/m*where(data > label, 1, -1)"],
    "LogisticRegressionOutput": ["y = 1/(1 + exp(-data))", "gradient = grad_scale/m*(y - label)"],
    "SoftmaxOutput": ["y[i] = exp(data[i])/sum(j, exp(data[j]))", "gradient[i] = grad_scale*(y[i] - where(i == label, 1, 0))"],
    "smooth_l1": ["y = where(abs(data) < 1/scalar**2, (scalar*data)**2/2, abs(data) - 1/(2*scalar**2))"],
    "CTCLoss": ["y = -log(p(label, data))"],
    # ---- updates
    "sgd_update": ["weight = weight - lr*(grad + wd*weight)"],
    "sgd_mom_update": ["mom = momentum*mom - lr*(grad + wd*weight)", "weight = weight + mom"],
    "nag_mom_update": ["mom = momentum*mom - lr*(grad + wd*weight)", "weight = weight + momentum*mom - lr*(grad + wd*weight)"],
    "adam_update": [
        "g = grad + wd*weight",
        "mean = beta1*mean + (1 - beta1)*g",
        "var = beta2*var + (1 - beta2)*g**2",
        "weight = weight - lr*mean/(sqrt(var) + epsilon)",
    ],
    "rmsprop_update": ["g = grad + wd*weight", "n = gamma1*n + (1 - gamma1)*g**2", "weight = weight - lr*g/sqrt(n + epsilon)"],
    "signsgd_update": ["weight = (1 - lr*wd)*weight - lr*sign(grad)"],
    "signum_update": [
        "mom = momentum*mom - (1 - momentum)*(grad + wd*weight)",
        "weight = (1 - lr*wd_lh)*weight + lr*sign(mom)",
    ],
    "sparse.adagrad_update": ["history = history + grad**2", "weight = weight - lr*(grad/sqrt(history + epsilon) + wd*weight)"],
    # ---- densities
    "random.pdf_normal": ["p = 1/(sigma*sqrt(2*pi))*exp(-(sample - mu)**2/(2*sigma**2))"],
    "random.pdf_uniform": ["p = 1/(high - low)"],
    "random.pdf_exponential": ["p = lam*exp(-lam*sample)"],
    "random.pdf_gamma": ["p = beta**alpha/gamma(alpha)*sample**(alpha - 1)*exp(-beta*sample)"],
    "random.pdf_poisson": ["p = lam**sample*exp(-lam)/gamma(sample + 1)"],
    "random.normal": ["p(y) = 1/(scale*sqrt(2*pi))*exp(-(y - loc)**2/(2*scale**2))"],
    # ---- spectra
    "contrib.fft": ["y[k] = sum(n, data[n]*exp(-2*pi*i*k*n/N))"],
    "contrib.ifft": ["y[n] = sum(k, data[k]*exp(2*pi*i*k*n/N))"],
    "contrib.div_sqrt_dim": ["y = data/sqrt(d)"],
    # ---- attention, queries, keys and values by Q, K and V, heads of a batch by b
    "contrib.interleaved_matmul_selfatt_qk": ["y[b,i,j] = 1/sqrt(d)*sum(k, Q[i,b,k]*K[j,b,k])"],
    "contrib.interleaved_matmul_selfatt_valatt": ["y[i,b,k] = sum(j, attention[b,i,j]*V[j,b,k])"],
    "contrib.interleaved_matmul_encdec_qk": ["y[b,i,j] = 1/sqrt(d)*sum(k, Q[i,b,k]*K[j,b,k])"],
    "contrib.interleaved_matmul_encdec_valatt": ["y[i,b,k] = sum(j, attention[b,i,j]*V[j,b,k])"],
    # ---- boxes: middles m, sizes w; those of anchors are a and s
    "contrib.box_iou": [
        "y[i,j] = w*h/(area(lhs[i]) + area(rhs[j]) - w*h)",
        "w = maximum(minimum(lhs[i,2], rhs[j,2]) - maximum(lhs[i,0], rhs[j,0]), 0)",
        "h = maximum(minimum(lhs[i,3], rhs[j,3]) - maximum(lhs[i,1], rhs[j,1]), 0)",
    ],
    "contrib.box_nms": ["kept[i] = prod(j < i, 1 - kept[j]*where(iou(i,j) > overlap_thresh, 1, 0))"],
    "contrib.box_encode": [
        "y[k] = ((m[k] - a[k])/s[k] - means[k])/stds[k]",
        "y[k+2] = (log(w[k]/s[k]) - means[k+2])/stds[k+2]",
        "m[k] = (refs[k] + refs[k+2])/2",
        "w[k] = refs[k+2] - refs[k]",
        "a[k] = (anchors[k] + anchors[k+2])/2",
        "s[k] = anchors[k+2] - anchors[k]",
    ],
    "contrib.box_decode": [
        "y[k] = m[k] - w[k]/2",
        "y[k+2] = m[k] + w[k]/2",
        "m[k] = a[k] + std[k]*data[k]*s[k]",
        "w[k] = s[k]*exp(std[k+2]*data[k+2])",
    ],
    "contrib.MultiBoxPrior": [
        "x[j] = (j + offsets[1])*steps[1]",
        "y[i] = (i + offsets[0])*steps[0]",
        "w = size*height/width*sqrt(ratio)",
        "h = size/sqrt(ratio)",
        "result[i,j] = (x[j] - w/2, y[i] - h/2, x[j] + w/2, y[i] + h/2)",
    ],
    "contrib.MultiBoxTarget": [
        "loc_target[k] = (m[k] - a[k])/(s[k]*variances[k])",
        "loc_target[k+2] = log(w[k]/s[k])/variances[k+2]",
        "cls_target = label[0] + 1",
    ],
    "contrib.MultiBoxDetection": [
        "m[k] = a[k] + variances[k]*loc_pred[k]*s[k]",
        "w[k] = s[k]*exp(variances[k+2]*loc_pred[k+2])",
        "kept[i] = prod(j < i, 1 - kept[j]*where(iou(i,j) >= nms_threshold, 1, 0))",
    ],
    "contrib.Proposal": PROPOSAL,
    "contrib.MultiProposal": PROPOSAL,
    # ---- regions of images, of which r is one; x is the image between its pixels
    "ROIPooling": [
        "y[r,c,i,j] = max((p,q), data[rois[r,0],c,p,q])",
        "t + floor(i*h/H) <= p < t + ceil((i + 1)*h/H)",
        "t = round(spatial_scale*rois[r,2])",
        "h = round(spatial_scale*rois[r,4]) - t + 1",
    ],
    "contrib.PSROIPooling": [
        "y[r,c,i,j] = 1/K*sum((p,q), data[rois[r,0],(c,i,j),p,q])",
        "floor(t + i*h/H) <= p < ceil(t + (i + 1)*h/H)",
        "t = spatial_scale*round(rois[r,2])",
        "h = spatial_scale*(round(rois[r,4]) + 1) - t",
    ],
    "contrib.ROIAlign": [
        "y[r,c,i,j] = 1/K**2*sum((p,q), x(u[i,p], v[j,q]))",
        "u[i,p] = spatial_scale*rois[r,2] + (i + (p + 1/2)/K)*h/H",
        "h = maximum(spatial_scale*(rois[r,4] - rois[r,2]), 1)",
    ],
    "contrib.RROIAlign": [
        "y[r,c,i,j] = 1/K**2*sum((p,q), x(u, v))",
        "u = spatial_scale*rois[r,1] + a*cos(theta) + b*sin(theta)",
        "v = spatial_scale*rois[r,2] + b*cos(theta) - a*sin(theta)",
        "a = ((j + (q + 1/2)/K)/W - 1/2)*w",
        "b = ((i + (p + 1/2)/K)/H - 1/2)*h",
    ],
    "contrib.DeformableConvolution": [
        "y[n,f,p] = bias[f] + sum((c,q), weight[f,c,q]*data[n,c,stride*p + dilate*q - pad + offset[n,q,p]])"
    ],
    "contrib.ModulatedDeformableConvolution": [
        "y[n,f,p] = bias[f] + sum((c,q), weight[f,c,q]*mask[n,q,p]*data[n,c,stride*p + dilate*q - pad + offset[n,q,p]])"
    ],
    "Correlation": [
        "y[n,(a,b),i,j] = 1/(C*kernel_size**2)*sum((c,p,q), data1[n,c,u,v]*data2[n,c,u + stride2*a,v + stride2*b])",
        "u = max_displacement + stride1*i + p - pad_size",
        "v = max_displacement + stride1*j + q - pad_size",
    ],
    "BilinearSampler": [
        "y[n,c,i,j] = sum((p,q), k(p - v)*k(q - u)*data[n,c,p,q])",
        TENT,
        "u = (grid[n,0,i,j] + 1)*(W - 1)/2",
        "v = (grid[n,1,i,j] + 1)*(H - 1)/2",
    ],
    "GridGenerator": [
        "affine[n,k,i,j] = data[n,3*k]*x[j] + data[n,3*k + 1]*y[i] + data[n,3*k + 2]",
        "warp[n,0,i,j] = 2*(data[n,0,i,j] + j)/(W - 1) - 1",
        "warp[n,1,i,j] = 2*(data[n,1,i,j] + i)/(H - 1) - 1",
        "x[j] = 2*j/(W - 1) - 1",
        "y[i] = 2*i/(H - 1) - 1",
    ],
    "SpatialTransformer": [
        "result[n,c,i,j] = sum((p,q), k(p - (v + 1)*(H - 1)/2)*k(q - (u + 1)*(W - 1)/2)*data[n,c,p,q])",
        TENT,
        "u = loc[n,0]*x[j] + loc[n,1]*y[i] + loc[n,2]",
        "v = loc[n,3]*x[j] + loc[n,4]*y[i] + loc[n,5]",
    ],
    "contrib.BilinearResize2D": [
        "y[n,c,i,j] = sum((p,q), k(p - i*(h - 1)/(H - 1))*k(q - j*(w - 1)/(W - 1))*data[n,c,p,q])",
        TENT,
    ],
    "contrib.AdaptiveAvgPooling2D": [
        "y[n,c,i,j] = 1/K*sum((p,q), data[n,c,p,q])",
        "floor(i*h/H) <= p < ceil((i + 1)*h/H)",
        "floor(j*w/W) <= q < ceil((j + 1)*w/W)",
    ],
    # ---- images; u is drawn for each image, l is the light of a pixel
    "image.to_tensor": ["y[c,i,j] = data[i,j,c]/255"],
    "image.normalize": ["y[c,i,j] = (data[c,i,j] - mean[c])/std[c]"],
    "image.crop": ["result[i,j,c] = data[y + i,x + j,c]"],
    "image.flip_left_right": ["y[i,j,c] = data[i,n - 1 - j,c]"],
    "image.flip_top_bottom": ["y[i,j,c] = data[n - 1 - i,j,c]"],
    "image.random_flip_left_right": ["y[i,j,c] = where(u < 1/2, data[i,n - 1 - j,c], data[i,j,c])"],
    "image.random_flip_top_bottom": ["y[i,j,c] = where(u < 1/2, data[n - 1 - i,j,c], data[i,j,c])"],
    "image.resize": [
        "y[i,j,c] = sum((p,q), k(p - u[i])*k(q - v[j])*data[p,q,c])",
        TENT,
        "u[i] = minimum(maximum((i + 1/2)*h/H - 1/2, 0), h - 1)",
        "v[j] = minimum(maximum((j + 1/2)*w/W - 1/2, 0), w - 1)",
    ],
    "image.adjust_lighting": ["y[c] = data[c] + sum(k, alpha[k]*v[c,k])"],
    "image.random_lighting": ["y[c] = data[c] + sum(k, alpha[k]*v[c,k])", "p(alpha[k]) = normal(0, alpha_std)"],
    "image.random_brightness": ["y = u*data", "min_factor <= u < max_factor"],
    "image.random_contrast": ["y = u*data + (1 - u)*mean(l)", LIGHT, "min_factor <= u < max_factor"],
    "image.random_saturation": ["y[c] = u*data[c] + (1 - u)*l", LIGHT, "min_factor <= u < max_factor"],
    "image.random_hue": ["hue(y) = mod(hue(data) + u, 1)", "min_factor <= u < max_factor"],
    # ---- shapes
    "Flatten": ["y[i,(j,k)] = data[i,j,k]"],
    "Reshape": ["ravel(y) = ravel(data)"],
    "reshape_like": ["ravel(y) = ravel(lhs)"],
    "expand_dims": ["y[i,0,j] = data[i,j]"],
    "squeeze": ["y[i,j] = data[i,0,j]"],
    "broadcast_axis": ["y[i,j] = data[i,0]"],
    "broadcast_to": ["y[i,j] = data[i,0]"],
    "broadcast_like": ["y[i,j] = lhs[i,0]"],
    "shape_array": ["y[k] = n[k]"],
    "size_array": ["y = prod(k, n[k])"],
    "slice": ["y[i] = data[begin + step*i]"],
    "slice_like": ["y[i] = data[i]", "0 <= i < m"],
    "Crop": ["y[n,c,i,j] = data[n,c,offset[0] + i,offset[1] + j]"],
    "Concat": ["y[i] = where(i < n, arg0[i], arg1[i - n])"],
    "SliceChannel": ["output[k][i] = data[k*n/num_outputs + i]"],
    "Pad": [
        "constant[i] = where(b <= i < b + n, data[i - b], constant_value)",
        "edge[i] = data[minimum(maximum(i - b, 0), n - 1)]",
        "reflect[i] = data[n - 1 - abs(n - 1 - abs(i - b))]",
    ],
    "depth_to_space": ["y[n,c,b*i + p,b*j + q] = data[n,(b*p + q)*C + c,i,j]"],
    "space_to_depth": ["y[n,(b*p + q)*C + c,i,j] = data[n,c,b*i + p,b*j + q]"],
    "linalg.extracttrian": ["y[i*(i + 1)/2 + j] = A[i,j]", "0 <= j <= i"],
    "linalg.maketrian": ["y[i,j] = where(j <= i, A[i*(i + 1)/2 + j], 0)"],
    "col2im": ["y[n,c,s] = sum(stride*p + dilate*q - pad == s, data[n,(c,q),p])"],
    # ---- indices and orders
    "scatter_nd": ["y[indices[0,i],indices[1,i]] = data[i]"],
    "sparse.retain": ["y[indices[i]] = data[indices[i]]"],
    "contrib.boolean_mask": ["y = data[index != 0]"],
    "contrib.index_array": ["y[i,j] = (i, j)"],
    "contrib.index_copy": ["y[i] = where(index_vector[j] == i, new_tensor[j], old_tensor[i])"],
    "contrib.edge_id": ["y[i] = where(data[u[i],v[i]] != 0, data[u[i],v[i]], -1)"],
    "fill_element_0index": ["y[i,j] = where(j == rhs[i], mhs[i], lhs[i,j])"],
    "ravel_multi_index": ["y[j] = sum(i, data[i,j]*prod(k > i, shape[k]))"],
    "unravel_index": ["y[i,j] = mod(floor(data[j]/prod(k > i, shape[k])), shape[i])"],
    "contrib.arange_like": ["y[i] = start + step*floor(i/repeat)"],
    "argsort": ["data[y[i]] <= data[y[i+1]]"],
    "sort": ["y[i] = data[argsort(data)[i]]"],
    "topk": [
        "data[indices[i]] >= data[indices[i+1]]",
        "value[i] = data[indices[i]]",
        "mask[i] = sum(j < k, where(indices[j] == i, 1, 0))",
    ],
    "argmax_channel": ["y[n] = argmax(c, data[n,c])"],
    "shuffle": ["y[i] = data[permutation[i]]"],
    "SequenceLast": ["y[n] = data[sequence_length[n] - 1,n]"],
    "SequenceMask": ["y[t,n] = where(t < sequence_length[n], data[t,n], value)"],
    "SequenceReverse": ["y[t,n] = where(t < sequence_length[n], data[sequence_length[n] - 1 - t,n], data[t,n])"],
    # ---- counts and tests
    "all": ["y = prod(i, where(data[i] != 0, 1, 0))"],
    "any": ["y = max(i, where(data[i] != 0, 1, 0))"],
    "all_finite": ["y = prod(i, where(abs(data[i]) < inf, 1, 0))"],
    "multi_all_finite": ["y = prod((k,i), where(abs(data[k,i]) < inf, 1, 0))"],
    "contrib.allclose": ["y = prod(i, where(abs(a[i] - b[i]) <= atol + rtol*abs(b[i]), 1, 0))"],
    "contrib.getnnz": ["y = sum(i, where(data[i] != 0, 1, 0))"],
    "contrib.count_sketch": ["y[n,k] = sum(h[i] == k, s[i]*data[n,i])"],
    "reset_arrays": ["data[k,i] = 0"],
    # ---- further losses
    "MakeLoss": ["y = data", "gradient = where(normalization == 'null', grad_scale, grad_scale/m)"],
    "make_loss": ["y = data", "gradient = 1"],
    "SVMOutput": [
        "y = data",
        "gradient[i] = 2*C*where(i == label, -maximum(margin - data[i], 0), maximum(margin + data[i], 0))",
    ],
    "IdentityAttachKLSparseReg": [
        "y = data",
        "gradient = g + penalty*((1 - rho)/(1 - moving_avg) - rho/moving_avg)",
        "moving_avg = momentum*moving_avg + (1 - momentum)/n*sum(i, data[i])",
    ],
    "contrib.hawkesll": [
        "output = sum(i, log(lda[k] + alpha[k]*beta[k]*s[i])) - sum(m, lda[m]*max_time + alpha[m]*c[m])",
        "c[m] = state[m] + sum(marks[j] == m, 1) - out_state[m]",
        "s[i] = state[k]*exp(-beta[k]*t[i]) + sum((j < i, marks[j] == k), exp(-beta[k]*(t[i] - t[j])))",
        "out_state[m] = state[m]*exp(-beta[m]*max_time) + sum(marks[j] == m, exp(-beta[m]*(max_time - t[j])))",
        "k = marks[i]",
        "t[i] = sum(j <= i, lags[j])",
    ],
    # ---- further updates; k is the number of a tensor, weight32 the float32 copy of float16 weights
    "lamb_update_phase1": LAMB,
    "mp_lamb_update_phase1": [line.replace("weight", "weight32") for line in LAMB],
    "lamb_update_phase2": ["weight = weight - lr*r1/r2*g"],
    "mp_lamb_update_phase2": ["weight32 = weight32 - lr*r1/r2*g", "weight = weight32"],
    "ftrl_update": [
        "z = z + grad - (sqrt(n + grad**2) - sqrt(n))/lr*weight",
        "n = n + grad**2",
        "weight = where(abs(z) > lamda1, (lamda1*sign(z) - z)/((beta + sqrt(n))/lr + wd), 0)",
    ],
    "rmspropalex_update": [
        "e = grad + wd*weight",
        "n = gamma1*n + (1 - gamma1)*e**2",
        "g = gamma1*g + (1 - gamma1)*e",
        "delta = gamma2*delta - lr*e/sqrt(n - g**2 + epsilon)",
        "weight = weight + delta",
    ],
    "multi_lars": [
        "y = lrs*where(land(w > 0, g > 0), eta*w/(g + wds*w + eps), 1)",
        "w = sqrt(weights_sum_sq)",
        "g = rescale_grad*sqrt(grads_sum_sq)",
    ],
    "ftml_update": [
        "g = grad + wd*weight",
        "v = beta2*v + (1 - beta2)*g**2",
        "c = (1 - beta1**t)/lr*(sqrt(v/(1 - beta2**t)) + epsilon)",
        "z = beta1*z + (1 - beta1)*g - (c - beta1*d)*weight",
        "d = c",
        "weight = -z/d",
    ],
    "contrib.group_adagrad_update": [
        "history[i] = history[i] + 1/n*sum(j, grad[i,j]**2)",
        "weight[i,j] = weight[i,j] - lr*grad[i,j]/sqrt(history[i] + epsilon)",
    ],
    "mp_sgd_update": ["weight32 = weight32 - lr*(grad + wd*weight32)", "weight = weight32"],
    "mp_sgd_mom_update": ["mom = momentum*mom - lr*(grad + wd*weight32)", "weight32 = weight32 + mom", "weight = weight32"],
    "mp_nag_mom_update": [
        "v = momentum*mom - lr*(grad + wd*weight32)",
        "w = weight32 + momentum*v - lr*(grad + wd*weight32)",
        "mom = v - lr*wd*(w - weight32)",
        "weight32 = w",
        "weight = w",
    ],
    **{f"{prefix}multi_sgd_update": MULTI for prefix in ("", "preloaded_")},
    **{f"{prefix}multi_sgd_mom_update": MULTI_MOM for prefix in ("", "preloaded_")},
    **{f"{prefix}multi_mp_sgd_update": _of_copies(MULTI) for prefix in ("", "preloaded_")},
    **{f"{prefix}multi_mp_sgd_mom_update": _of_copies(MULTI_MOM) for prefix in ("", "preloaded_")},
    # ---- quantization: levels L, limits r
    "contrib.quantize": ["y = round(L/r*data)", REACH, LEVELS],
    "contrib.quantize_v2": ["y = round(L/r*data)", "r = maximum(abs(low), abs(high))", HALF_LEVELS],
    "contrib.quantize_asym": ["y = floor(scale*data + shift + 1/2)", "scale = 255/(high - low)", "shift = 255 - scale*high"],
    "contrib.requantize": ["y = round(L/c*r*data/(2**31 - 1))", REACH, LEVELS],
    "contrib.dequantize": ["y = r/L*data", REACH, "L = where(type(data) == 'int8', 127.5, 255.5)"],
    "contrib.calibrate_entropy": ["divergence = sum(i, p[i]*log(p[i]/q[i]))", "threshold = argmin(t, divergence(t))"],
    "contrib.quantized_conv": [f"y[n,f,p] = b[f] + {CONVOLUTION}", "max_output = (2**31 - 1)*r/L*w/127"],
    "contrib.quantized_fully_connected": [
        "y[n,i] = sum(k, data[n,k]*weight[i,k]) + b[i]",
        "max_output = (2**31 - 1)*r/L*w/127",
    ],
    "contrib.quantized_embedding": ["y[i] = weight[data[i]]"],
    "contrib.quantized_act": ["y = maximum(data, 0)"],
    "contrib.quantized_flatten": ["y[i,(j,k)] = data[i,j,k]"],
    "contrib.quantized_pooling": [
        "maximum[n,c,p] = max(q, data[n,c,stride*p + q - pad])",
        "average[n,c,p] = round(1/K*sum(q, data[n,c,stride*p + q - pad]))",
    ],
    "contrib.quantized_concat": ["y[k,i] = round(L/R*r[k]/L[k]*data[k,i])", "R = max(k, r[k])"],
    "contrib.quantized_elemwise_add": ["y = round(L/R*(r[0]/L[0]*lhs + r[1]/L[1]*rhs))", "R = r[0] + r[1]"],
    "contrib.quantized_elemwise_mul": ["y = lhs*rhs", "max_output = (2**31 - 1)*r[0]/127*r[1]/127"],
    "contrib.quantized_batch_norm": [
        "y = round(a*data + b)",
        "a = gamma*r/(R*sqrt((moving_var + eps)*(1 + eps)))",
        "b = 127.5/R*(beta - gamma*moving_mean/sqrt(moving_var + eps))",
    ],
    # ---- further distributions
    "random.pdf_dirichlet": ["p = gamma(sum(i, alpha[i]))/prod(i, gamma(alpha[i]))*prod(i, sample[i]**(alpha[i] - 1))"],
    "random.pdf_negative_binomial": ["P = gamma(sample + k)/(gamma(sample + 1)*gamma(k))*p**k*(1 - p)**sample"],
    "random.pdf_generalized_negative_binomial": [
        "P = gamma(sample + k)/(gamma(sample + 1)*gamma(k))*p**k*(1 - p)**sample",
        *MEAN_AND_DISPERSION,
    ],
    "random.randint": ["P(y) = 1/(high - low)"],
    "sample_multinomial": ["P(y == i) = data[i]"],
    "random.normal_like": ["p(y) = 1/(scale*sqrt(2*pi))*exp(-(y - loc)**2/(2*scale**2))"],
    "sample_normal": ["p(y) = 1/(sigma*sqrt(2*pi))*exp(-(y - mu)**2/(2*sigma**2))"],
    **{
        name: lines for drawn, lines in DRAWN.items() for name in (f"random.{drawn}", f"random.{drawn}_like", f"sample_{drawn}")
    },
    # ---- other names of layers
    "BatchNorm_v1": [NORM, "moving_mean = momentum*moving_mean + (1 - momentum)*mu"],
    "contrib.SyncBatchNorm": [NORM, "moving_mean = momentum*moving_mean + (1 - momentum)*mu"],
    "contrib.BatchNormWithReLU": ["y = maximum(gamma*(data - mu)/sqrt(sigma**2 + eps) + beta, 0)"],
    "Convolution_v1": [f"y[n,f,p] = bias[f] + {CONVOLUTION}"],
    "Pooling_v1": POOLING,
}
