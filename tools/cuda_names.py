# SPDX-License-Identifier: Apache-2.0
"""Which replaced library a function name belongs to, and how the lists of names are read.

src/vgpu/<folder>/<folder>.names has every name, <folder>.def a row for each that is more than refused; what the rows
mean stands in src/vgpu/core/shell.h.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
VGPU = ROOT / "src" / "vgpu"

# In this order: the first that matches owns the name. cuFFTW and cusolverMg are libraries of their own that nobody
# replaces.
PATTERNS = [
    ("cublaslt", r"cublasLt[A-Z]\w*"),
    ("cublas", r"cublas[A-Z]\w*"),
    ("cudnn", r"cudnn[A-Z]\w*"),
    ("cufft", r"cufft(?!w)[A-Z]\w*|__cufft\w+"),
    ("curand", r"curand[A-Z]\w*"),
    ("cusparselt", r"cusparseLt[A-Z]\w*"),
    ("cusparse", r"cusparse[A-Z]\w*"),
    ("cusolver", r"cusolver(?!Mg)[A-Z]\w*"),
    ("nccl", r"p?nccl[A-Z]\w*"),
    ("nvml", r"nvml[A-Z]\w*"),
    ("cupti", r"cupti[A-Z]\w*"),
    ("nvtx", r"nvtx[A-Z]\w*"),
    ("nvrtc", r"nvrtc[A-Z]\w*"),
    ("cufile", r"cuFile[A-Z]\w*"),
    ("nvshmem", r"nvshmem(?:x|id)?_\w+"),
    ("cudart", r"(?:__)?cuda[A-Z]\w*"),
    ("driver", r"cu(?!FFT|BLAS|DNN|RAND|SPARSE|SOLVER)[A-Z]\w*"),
]
FOLDERS = [folder for folder, _ in PATTERNS]
# Any of these names; the second for scanning bytes, which is tried only where one of their first letters stands.
ANY = re.compile("|".join("(?P<%s>%s)" % (folder, pattern) for folder, pattern in PATTERNS))
ANY_BYTES = ("(?=[_cnp])(?:%s)" % "|".join(pattern for _, pattern in PATTERNS)).encode()

# Names of that shape that are no functions of these libraries: enumerators, types and their accessors, functions of
# Windows, and enums of the runtime that PyTorch and others name in messages.
_SHAPES = re.compile(r"cuda(Error|D3D|GraphicsD3D|Success|StreamCaptureStatus)\w*|__cuda(CDP2|_)\w*"
                     r"|\w+(_t|_params|_params_st|_st|_enum|_getter)")
# Names that programs use for something of their own: PyTorch in operators and messages, and for its NVSHMEM operators;
# types and words of CUDA's own bindings; functions that were never released.
OTHERS = set("""
cudaElapsedUs cudaCopy cudaCheck cudaDeviceForPointer cudaError cudnnFind ncclCommWatchdog cublasLtMatmulScaleMode
cublasOpFromChar cuLaunchKernelExHandle
nvshmem_all_to_all nvshmem_broadcast nvshmem_get nvshmem_get_out nvshmem_put nvshmem_put_with_signal
nvshmem_wait_for_signal
cuComplex cuDoubleComplex cuFloatComplex cuFormat cuFunc cudaVersionMajor cudaVersionMinor
cudaPeerRegister cudaPeerUnregister cudaPeerGetDevicePointer
""".split())

REFUSED = {"TN_REFUSE", "TN_REFUSE_NULL"}  # every other verdict answers, in one way or another
_ROW = re.compile(r"^(TN_[A-Z0-9_]+)\((\w+)\)", re.MULTILINE)
_NAME = re.compile(r"^(\w+)( null)?$", re.MULTILINE)


def folder_of(name):
    """The table folder that a function name belongs to, or None."""
    match = ANY.fullmatch(name)
    return match.lastgroup if match else None


def is_function(name):
    """Whether the name has the shape of a function of one of these libraries and is not known to be something else."""
    return folder_of(name) is not None and name not in OTHERS and not _SHAPES.fullmatch(name)


def names_path(folder):
    return VGPU / folder / (folder + ".names")


def rows_path(folder):
    return VGPU / folder / (folder + ".def")


def read_names(folder):
    """name -> whether the function returns a pointer or a size; empty when the library is new."""
    path = names_path(folder)
    return {name: bool(null) for name, null in _NAME.findall(path.read_text())} if path.exists() else {}


def read_table(folder):
    """name -> verdict of one library: its row, or refused."""
    rows = {name: verdict for verdict, name in _ROW.findall(rows_path(folder).read_text())}
    return {name: rows.get(name, "TN_REFUSE_NULL" if null else "TN_REFUSE")
            for name, null in read_names(folder).items()}


def read_tables():
    """folder -> {name: verdict} of all tables."""
    return {folder: read_table(folder) for folder in FOLDERS}


def sonames():
    """soname -> folder, from src/vgpu/sonames.def."""
    text = (VGPU / "sonames.def").read_text()
    return dict(re.findall(r'^TN_SONAME\("([^"]+)",\s*(\w+),', text, re.MULTILINE))
