"""Names of other libraries that are not here, and what does their work.

By place: the module below ``pullback``, "" for its top, or "Tensor"; see `rows`. "Module",
"Optimizer", "Schedule", "Generator" and "Operation" are objects of these kinds.
"""

from __future__ import annotations

import importlib
import re
import sys
from types import ModuleType

from pullback.hints.rows import rows
from pullback.hints.table import way_out

__all__ = ["MODULES", "for_name", "of_object", "space_of"]

_SAVED = "pb.save(path, w=w) and pb.load(path), with pullback[save]; or np.savez(path, w=w.numpy())"
_UPDATE = "SGD, Adam, AdamW, RMSprop, Adagrad and LBFGS are there"
_BATCHES = "pb.data.batches(x, y, size=32, seed=0)"
_RULE = "@pb.autograd_function defines an operation, @op.backward beside it its rule, by names"
_DEVICE = "a device is a string here: 'cpu', 'cuda', 'cuda:1'"

NAMES = {
    "": f"""
Module Linear Parameter Sequential: pb.nn.Module, pb.nn.Linear and the like
device Device torch_device: {_DEVICE}
jit compile vmap_jit pmap make_jaxpr eval_shape xla_computation named_call pure_callback:
    functions run as they are; nothing is compiled
block_until_ready: leave it out: results are there when a function returns
device_put device_get devices local_devices: x.to("cuda") and x.to("cpu")
set_default_device get_default_device default_device: device="cuda" where a tensor is made, or
    x.to(device)
contiguous_format channels_last preserve_format: leave it out: memory is the array library's
config: pb.set_default_dtype(pb.float64) for jax_enable_x64
Array: pb.Tensor
profiler: time.perf_counter, or Python's cProfile
get_num_threads: pb.set_num_threads sets it
selu_ celu_ rrelu_ threshold_ dropout_: pb.nn.functional has it, called with inplace=True
use_deterministic_algorithms are_deterministic_algorithms_enabled set_float32_matmul_precision:
    leave it out: there is one way to compute
random seed initial_seed default_generator: pb.manual_seed(n), or pb.Generator()
func functional: the functions are at the top: pb.grad, pb.vjp, pb.jvp, pb.vmap, pb.jacobian;
    functional_call is pb.nn.functional_call
utils: pb.checkpoint(f)(x) for utils.checkpoint, {_BATCHES} for utils.data,
    pb.plot.history for utils.tensorboard, pb.nn.utils for nn.utils
amp autocast: choose dtypes: x.to(pb.float16)
distributed multiprocessing onnx fx hub backends quantization: there is none
sparse_coo_tensor: pb.interop.scipy.sparse.coo_array
float double: pb.float32 or pb.float64
half: pb.float16
bfloat16: pb.float32; NumPy has no bfloat16
long int short: pb.int64, pb.int32 or pb.int16
cfloat cdouble: pb.complex64 or pb.complex128
FloatTensor DoubleTensor HalfTensor LongTensor IntTensor ShortTensor ByteTensor BoolTensor:
    pb.tensor(data, dtype=pb.float32), and so on
dtype: pb.float32 and the others are dtypes; pb.DType is their class
Size: a shape is a tuple
set_printoptions: np.set_printoptions, for str(x.detach().numpy())
set_default_tensor_type: pb.set_default_dtype
distributions: pb.interop.scipy.stats.norm.logpdf and others; draws by pb.randn and pb.rand
lu lu_factor lu_solve: pb.linalg.solve, or pb.linalg.qr
version: pb.__version__
tuple list dict isinstance: Python's own, which take tensors
getval: x.detach()
gradcheck gradgradcheck check_grads: pb.check.gradcheck(f, args)
detect_grad_anomaly set_anomaly_enabled: pb.detect_anomaly()
stop_gradient: x.detach()
custom_vjp custom_jvp custom_gradient primitive defvjp defjvp defvjp_argnum extend: {_RULE}
vspace VSpace Box ArrayBox tracer: nothing to do: pb.Tensor is the box, and needs no vspace
make_vjp: pb.vjp(f, *primals) gives (out, vjp_fn)
make_jvp: pb.jvp(f, primals, tangents), or pb.linearize
make_hvp hessian_tensor_product: pb.hvp(f)(x, v)
tensor_jacobian_product vector_jacobian_product: pb.vjp(f, x)[1](v)
make_ggnvp: pb.jvp and pb.vjp, one after the other
grad_named multigrad multigrad_dict: pb.grad(f, argnum=("a", "b"))
grad_and_aux: pb.grad(f, has_aux=True)
holomorphic_grad: pb.grad of the real part
value_and_multigrad: pb.value_and_grad(f, argnum=(0, 1))
flatten_func misc: transforms take containers themselves; pb.optim.Adam and
    pb.optimize.minimize are optimizers
make_diagonal: pb.diag_embed
test_util: pb.check.gradcheck(f, args)
numpy jnp: import numpy as np: NumPy's functions take tensors
scipy: pb.interop.scipy, or pb.special
lax: x.detach() for lax.stop_gradient; pb.where, np.where and Python's own if, for and while
scan fori_loop while_loop: pb.where, np.where and Python's own if, for and while
linear_transpose: pb.vjp(f, x)[1]
remat: pb.checkpoint(f)
tree tree_map tree_util tree_leaves tree_flatten tree_unflatten tree_structure: transforms take
    containers themselves; a step along gradients is pb.optim's, or a comprehension
with_no_grad local_no_grad: with pb.no_grad():
with_enable_grad: with pb.enable_grad():
with_detect_anomaly: with pb.detect_anomaly():
as_array as_numeric: x.detach().numpy()
dataloader dataset DataLoader: {_BATCHES}
""",
    "data": f"""
DataLoader TensorDataset Dataset IterableDataset random_split Subset: {_BATCHES} of arrays
""",
    "nn": """
initializers: pb.nn.init
modules: its classes are here: pb.nn.Linear
parallel DistributedDataParallel: there is none
UninitializedParameter LazyLinear LazyConv1d LazyConv2d LazyConv3d LazyBatchNorm1d LazyBatchNorm2d
    LazyBatchNorm3d: the layers without Lazy, with their sizes
ParameterList ParameterDict: a list or a dict of pb.nn.Parameter
Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder TransformerDecoderLayer:
    pb.nn.MultiheadAttention, pb.nn.LayerNorm and pb.nn.Linear make one
InstanceNorm1d InstanceNorm2d InstanceNorm3d: pb.nn.functional.instance_norm
SyncBatchNorm: pb.nn.BatchNorm2d
EmbeddingBag: pb.nn.functional.embedding, and a sum
ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d
    ZeroPad1d ZeroPad2d ZeroPad3d ConstantPad1d ConstantPad2d ConstantPad3d CircularPad1d
    CircularPad2d CircularPad3d: pb.nn.functional.pad
UpsamplingNearest2d UpsamplingBilinear2d: pb.nn.Upsample
CTCLoss MultiLabelMarginLoss AdaptiveLogSoftmaxWithLoss: there is none
Buffer: module.register_buffer(name, tensor)
DataParallel: there is none
""",
    "nn.functional": """
relu_ relu6_ leaky_relu_ elu_ selu_ celu_ hardtanh_ threshold_ rrelu_ dropout_: the function without
    _, called with inplace=True
upsample: pb.nn.functional.interpolate
embedding_bag: pb.nn.functional.embedding, and a sum
feature_alpha_dropout: pb.nn.functional.alpha_dropout
ctc_loss: there is none
multi_head_attention_forward: pb.nn.MultiheadAttention, or
    pb.nn.functional.scaled_dot_product_attention
""",
    "linalg": """
lu lu_factor lu_solve ldl_factor ldl_solve: pb.linalg.solve, or pb.linalg.qr
inv_ex solve_ex cholesky_ex: the function without _ex
norm: pb.norm(x) of all elements, pb.linalg.vector_norm or pb.linalg.matrix_norm
""",
    "special": """
bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0
    modified_bessel_k1: pb.interop.scipy.special.j0 and others
multigammaln: pb.mvlgamma
""",
    "nn.init": """
sparse_ dirac_: with pb.no_grad(): w.copy_(values)
""",
    "nn.utils": """
parameters_to_vector: pb.concat([p.flatten() for p in parameters])
vector_to_parameters: with pb.no_grad(): p.copy_(part.reshape(p.shape)) for each part of
    vector.split([p.numel() for p in parameters])
get_total_norm: pb.nn.utils.clip_grad_norm_(parameters, float("inf")) returns the norm
clip_grad_norm clip_grads_with_norm_: pb.nn.utils.clip_grad_norm_
weight_norm spectral_norm parametrizations parametrize prune: compute the weight in forward, such as
    w / w.norm(), and hand it to pb.nn.functional.linear
rnn: pb.nn.functional.pad makes sequences of one length; multiply by a mask what is padded
stateless: pb.nn.functional_call(module, parameters, x)
""",
    "optim.lr_scheduler": """
MultiplicativeLR: LambdaLR, with the product of the factors up to the epoch
PolynomialLR: LambdaLR(optimizer, lambda epoch: (1 - min(epoch, n) / n) ** power)
CyclicLR: OneCycleLR, CosineAnnealingWarmRestarts, or LambdaLR with a function of the epoch
ChainedScheduler: LambdaLR with the product of the factors, or SequentialLR for one after the other
_LRScheduler: LRScheduler
""",
    "Schedule": """
get_lr: get_last_lr()
print_lr: print(scheduler.get_last_lr())
""",
    "Optimizer": """
register_step_pre_hook register_step_post_hook: a subclass whose step does it
lr params betas momentum weight_decay: optimizer.param_groups[0]["lr"], and so on
minimize: loss.backward(), then optimizer.step()
""",
    "Module": """
_modules: dict(module.named_children())
cuda: module.to("cuda")
cpu: module.to("cpu")
half: module.to(pb.float16)
bfloat16: module.to(pb.float32); NumPy has no bfloat16
type: module.to(dtype)
to_empty: module.to(device)
add_module register_module: setattr(module, name, layer)
get_submodule: dict(module.named_modules())[name]
get_parameter: dict(module.named_parameters())[name]
get_buffer: dict(module.named_buffers())[name]
register_forward_hook register_forward_pre_hook: a subclass whose forward does it;
    pb.inspect.record() shows the values of every operation
register_full_backward_hook register_backward_hook register_full_backward_pre_hook:
    x.register_hook(f) of a tensor in forward
share_memory: memory is the array library's
compile: modules run as they are; nothing is compiled
device: next(module.parameters()).device
shape ndim numel normal_ uniform_ fill_ copy_ clone detach: a parameter's, such as
    module.weight
dtype: next(module.parameters()).dtype
get_extra_state set_extra_state: pb.save(path, model=model, more=values) keeps what else there is
""",
    "Generator": """
seed initial_seed: manual_seed(n)
""",
    "Operation": """
defvjp defvjps def_vjp defgrad vjp: @op.backward decorates the rule, which returns gradients by name
defjvp defjvps defjvp_argnum: @op.jvp decorates the rule of forward mode
def_vmap defbatching: @op.vmap decorates the rule of batches
""",
    "optim": f"""
Adadelta Adamax NAdam RAdam Rprop ASGD Adafactor: {_UPDATE}; others are a few lines with
    pb.no_grad() and w.grad
clip_grad_norm_: pb.nn.utils.clip_grad_norm_
swa_utils: average the values of state_dict() yourself
""",
    "autograd": """
gradcheck: pb.check.gradcheck(f, args)
gradgradcheck: pb.check.gradcheck(f, args, order=2)
functional: pb.jacobian(f)(x), pb.hessian, pb.hvp, pb.vjp and pb.jvp
forward_ad: pb.jvp(f, primals, tangents)
profiler: time.perf_counter, or Python's cProfile
function: pb.Function and pb.once_differentiable
graph: pb.saved_tensors_hooks, pb.save_on_cpu and pb.register_multi_grad_hook
Variable: tensors themselves, with requires_grad=True
jacobian hessian: pb.jacobian and pb.hessian
elementwise_grad value_and_grad make_vjp make_jvp make_hvp checkpoint numpy scipy extend misc
    test_util primitive tracer core builtins: this is PyTorch's module; HIPS autograd's is
    pullback.compat.autograd, and most of its names are at the top: pb.grad, pb.vjp
""",
    "optimize": """
Bounds LinearConstraint NonlinearConstraint OptimizeResult BFGS: SciPy's, from scipy.optimize
""",
    "Tensor": f"""
astype: x.to(dtype)
copy: x.clone(), which stays in the graph
stride strides storage storage_offset untyped_storage data_ptr flags layout:
    x.detach().numpy() has the memory
bfloat16: x.to(pb.float16)
is_sparse to_sparse to_dense: dense all; pb.interop.scipy.sparse.csr_array for sparse ones
set_ resize_ share_memory_ pin_memory: memory is the array library's
fill: x.fill_(value)
block_until_ready: leave it out: results are there when a function returns
devices: x.device
values indices: x.max(dim=1) has both, and so have x.min, sort and topk; pb.max the values alone
record_stream: leave it out: memory is the array library's
apply_ map_ map2_: operations of all elements, or x.copy_(pb.stack([f(v) for v in x]))
new: x.new_tensor(data)
lu lu_solve: pb.linalg.solve, or pb.linalg.qr
flat: x.flatten()
as_strided: x.unfold(dimension, size, step), or an index
conjugate: x.conj()
compress choose partition argpartition searchsorted: NumPy's function of the name takes the tensor
tobytes tofile dump dumps: {_SAVED}
at: x = x.clone(), then x[index] = values, which is recorded
""",
    "compat.autograd.extend": """
SparseObject: a gradient is an array: np.zeros, and add to the elements that are not 0
""",
    "compat.autograd.misc.tracers": """
full_graph FullGraphNode: pb.inspect.graph(value) of pullback's own names is the graph
ConstGraphNode const_graph_unary: const_graph, which records its graph anew in each call
""",
    "compat.autograd.numpy.numpy_vjps": """
grad_np_mean grad_np_sum grad_chooser grad_transpose grad_reshape_list: NumPy's functions have their
    gradients; a rule of your own calls make_vjp(np.mean, x)
""",
    "cuda": """
device_count current_device set_device synchronize empty_cache memory_allocated Stream Event
    get_device_name: CuPy has it (cupy.cuda); devices are strings here, 'cuda:1'
amp: choose dtypes: x.to(pb.float16)
manual_seed manual_seed_all seed seed_all initial_seed: pb.manual_seed(n)
""",
}

# The prefixes of R torch's functions, and where those of the same name are.
_OF_R = {
    "torch_save": _SAVED,
    "torch_load": _SAVED,
    "torch_": "pb.{}",
    "nnf_": "pb.nn.functional.{}",
    "nn_": "pb.nn.{}",
    "autograd_": "pb.autograd.{}",
    "cuda_": "pb.cuda.{}",
    "linalg_": "pb.linalg.{}",
    "optim_": "pb.optim.{}",
    "lr_": "pb.optim.lr_scheduler.{}",
}


# The modules whose public names are looked through.
MODULES = (
    *("", "nn.functional", "nn", "linalg", "special", "fft", "autograd", "optim", "implicit"),
    *("optimize", "nn.init", "nn.utils", "optim.lr_scheduler", "check", "data"),
)
# Of any other name at a place.
_OTHERS = {
    "optim": _UPDATE,
    "cuda": "CuPy may have it (cupy.cuda); devices are strings here, 'cuda:1'",
}


def for_name(owner: str, name: str) -> str:
    """Return what an error says of a name at a place; "" if it is of no library known."""
    return (
        of_object(owner, name)
        or _of_scipy(owner, name)
        or _of_r(owner, name)
        or _elsewhere(owner, name)
        or _OTHERS.get(owner, "")
    )


def of_object(owner: str, name: str) -> str:
    """Return what the row of a name at a place says, such as of a "Module"; "" without one."""
    known = {n: way for names, way in rows(NAMES.get(owner, "")) for n in names}
    return known.get(name, "")


def _of_scipy(owner: str, name: str) -> str:
    """Return the way of a solver of SciPy's, of what has solvers."""
    if owner not in ("implicit", "optimize"):
        return ""
    return way_out(f"scipy.optimize.{name}") or way_out(f"scipy.integrate.{name}")


def _of_r(owner: str, name: str) -> str:
    """Return what an error says of a name that R torch has with the prefix of its module."""
    prefix = "" if owner else next(filter(name.startswith, _OF_R), "")
    way = _OF_R.get(prefix, "")
    short = name.removeprefix(prefix)
    if way == way.format(""):
        return way
    module = way.removeprefix("pb.").removesuffix("{}").rstrip(".")
    space = space_of(module)
    wanted = {_plain(short), f"{_plain(short)}lr"}  # classes there, such as StepLR for lr_step
    public = vars(space).get("__all__", dir(space))
    named = short if short in public else next((n for n in public if _plain(n) in wanted), "")
    return way.format(named) if named else for_name(module, short) or for_name("", short)


def _elsewhere(owner: str, name: str) -> str:
    """Return where a name, or the function that a layer is of, is among ours or NumPy's."""
    wanted = {name}
    if owner.startswith("nn"):  # a layer's name: its function's, without the number of axes
        plain = _plain(name).removeprefix("lazy").removesuffix("loss")
        wanted = {_plain(name), plain, re.sub(r"\dd$", "", plain)}
    for module in MODULES:
        space = space_of(module)
        result = [n for n in vars(space).get("__all__", ()) if n == name or _plain(n) in wanted]
        if result:
            return f"it is {'.'.join(filter(None, ('pb', module, result[0])))}"
    if owner != "Tensor" and callable(getattr(sys.modules["pullback"].Tensor, name, None)):
        return f"it is a method: x.{name}(...)"
    if not owner and callable(function := getattr(sys.modules["numpy"], name, None)):
        is_class = isinstance(function, type)
        return "" if is_class else way_out(f"numpy.{name}") or f"it is NumPy's: np.{name}"
    return ""


def space_of(module: str) -> ModuleType:
    """Return the module of a name below pullback, "" for the top."""
    return importlib.import_module(f"pullback.{module}".rstrip("."))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
