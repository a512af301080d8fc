#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the lists of names src/vgpu/<folder>/<folder>.names complete.

A list holds every function that the library's headers declare, in any of the versions given, plus what the real
libraries export and what programs import from them: so it is a superset of what can be asked for. Names are only added,
with the packages that were read; the build refuses those that have no row in <folder>.def.

    tools/harvest_names.py --headers DIR... --environment SITE_PACKAGES...

Only names are taken from the headers: no text, type or comment of theirs.
"""
import argparse
import importlib.metadata
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cuda_names  # noqa: E402
import elf_names  # noqa: E402

# The headers that declare host functions of a library, by folder. NVTX is missing since version 3 of its headers holds
# the functions themselves: what libnvToolsExt exports is all that can be asked for. cuda_device_runtime_api.h and
# curand_kernel.h declare device functions, nvblas.h, cufftw.h, cusolverMg.h and cupti_pcsampling_util.h belong to
# libraries that nobody replaces.
HEADERS = {
    "driver": ["cuda.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cudaProfiler.h", "generated_cuda_meta.h",
               "generated_cudaGL_meta.h", "generated_cudaVDPAU_meta.h"],
    "cudart": ["cuda_runtime_api.h", "cuda_runtime.h", "cuda_profiler_api.h", "cuda_gl_interop.h",
               "cuda_egl_interop.h", "cuda_vdpau_interop.h", "cudart_platform.h", "host_runtime.h",
               "generated_cuda_runtime_api_meta.h", "generated_cuda_gl_interop_meta.h",
               "generated_cuda_vdpau_interop_meta.h", "generated_cudart_removed_meta.h"],
    "cublas": ["cublas.h", "cublas_api.h", "cublas_v2.h", "cublasXt.h"],
    "cublaslt": ["cublasLt.h"],
    "cudnn": ["cudnn*.h"],
    "cufft": ["cufft.h", "cufftXt.h", "cudalibxt.h"],
    "curand": ["curand.h"],
    "cusparse": ["cusparse.h", "cusparse_v2.h"],
    "cusparselt": ["cusparseLt.h"],
    "cusolver": ["cusolver_common.h", "cusolverDn.h", "cusolverSp.h", "cusolverRf.h",
                 "cusolverSp_LOWLEVEL_PREVIEW.h"],
    "nccl": ["nccl.h"],
    "nvml": ["nvml.h"],
    "cupti": ["cupti*.h"],
    "cufile": ["cufile.h"],
    "nvshmem": ["host/*.h"],
    "nvrtc": ["nvrtc.h"],
}
SKIPPED = {"cupti_pcsampling_util.h"}
# What the compiler calls in code that nvcc makes; some of these stand in no header.
COMPILER = """
__cudaRegisterFatBinary __cudaRegisterFatBinaryEnd __cudaUnregisterFatBinary __cudaRegisterFunction __cudaRegisterVar
__cudaRegisterManagedVar __cudaRegisterHostVar __cudaRegisterManagedVariable __cudaRegisterSurface
__cudaRegisterTexture __cudaRegisterShared __cudaRegisterSharedVar __cudaInitModule __cudaPushCallConfiguration
__cudaPopCallConfiguration __cudaLaunchKernel __cudaLaunchKernel_ptsz __cudaGetKernel __cudaGetProcAddress
__cudaRegisterUnifiedTable __cudaRegisterDeviceFunction
""".split()
# cudaProfiler.h comes in no package; libcuda exports these.
PROFILER = ["cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop"]
# Libraries whose header macros name symbols on both sides: #define cuMemAlloc cuMemAlloc_v2 where both are exported. In
# the others the left side is only a spelling in the source.
BOTH_SIDES = {"driver", "cudart", "nvml"}
# generated_*_meta.h carry the version that a function had when it got its present parameters: not part of the symbol.
_INTRODUCED = re.compile(r"_v\d{4,5}$")

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\r?\n|[^\n])*", re.MULTILINE)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_ALIAS = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+"
                    r"(?:__CUDA(?:RT)?_API_(PTDS|PTSZ)\([ \t]*(\w+)[ \t]*\)|(\w+))", re.MULTILINE)
_PARAMETERS = re.compile(r"\b(\w+?)_params(?:_st)?\b")
_CALL = re.compile(r"(\w+)\s*\(")
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|__declspec\s*\(.*?\)|\b[A-Z_]*DEPRECATED\w*\s*\([^()]*\)",
                        re.DOTALL)


def _at_top_level(text):
    """The text outside all braces, those of extern "C" apart, with a ; where a body was."""
    text = re.sub(r'extern\s*""\s*\{', " ", text)
    out, depth = [], 0
    for piece in re.split(r"([{}])", text):
        if piece == "{":
            depth += 1
        elif piece == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                out.append(" } ")
        elif depth == 0:
            out.append(piece)
    return "".join(out)


def _declarations(text):
    """(name, returns_pointer) of the functions declared in a header's text."""
    text = _ATTRIBUTE.sub(" ", _STRING.sub('""', _DIRECTIVE.sub(" ", text)))
    for statement in _at_top_level(text).split(";"):
        body = statement.rsplit("}", 1)[-1] if "}" in statement else statement
        if re.search(r"\btypedef\b|\binline\b|__inline__|__forceinline__|__device__|\btemplate\b", body):
            continue
        for match in _CALL.finditer(body):
            if cuda_names.folder_of(match.group(1)):
                before = body[:match.start()]
                yield match.group(1), "*" in before or bool(re.search(r"\bsize_t\b", before))
                break


def _aliases(text):
    """Names that a header's macros give: versioned names and per-thread variants, as they are exported."""
    for name, kind, argument, plain in _ALIAS.findall(text):
        if kind:
            yield from (name, argument, "%s_%s" % (argument, kind.lower()))
        elif cuda_names.folder_of(name) and cuda_names.folder_of(plain) == cuda_names.folder_of(name):
            yield from (name, plain) if cuda_names.folder_of(name) in BOTH_SIDES else (plain,)


def harvest_header(path, folder):
    """name -> returns_pointer (None: not known) of the functions of `folder` in one header."""
    raw = _COMMENT.sub(" ", path.read_text(errors="replace"))
    found = {}
    for name in _aliases(raw):
        found.setdefault(name, None)
    if path.name.startswith("generated_"):
        for name in _PARAMETERS.findall(raw):
            found.setdefault(_INTRODUCED.sub("", name), None)
    for name, pointer in _declarations(raw):
        found[name] = pointer
    return {name: pointer for name, pointer in found.items()
            if cuda_names.folder_of(name) == folder and cuda_names.is_function(name)}


def harvest_headers(roots):
    """folder -> {name: returns_pointer} over all include folders, searched in full."""
    tables = {folder: {} for folder in cuda_names.FOLDERS}
    for root in roots:
        for folder, patterns in HEADERS.items():
            for pattern in patterns:
                for path in root.rglob(pattern):
                    if path.name in SKIPPED or "cccl" in path.parts:
                        continue
                    for name, pointer in harvest_header(path, folder).items():
                        if pointer is not None or name not in tables[folder]:
                            tables[folder][name] = pointer
    return tables


def _objects(environment):
    for path in sorted(environment.rglob("*.so*")):
        if path.is_file() and not path.is_symlink():
            yield path


def harvest_environment(environment):
    """folder -> names that the real libraries in site-packages export, or that its other objects import."""
    found = {folder: set() for folder in cuda_names.FOLDERS}
    owned = cuda_names.sonames()
    for path in _objects(environment):
        owner = owned.get(path.name)
        for symbol in elf_names.symbols(path):
            folder = cuda_names.folder_of(symbol.name)
            if not folder:
                continue
            if symbol.defined and owner == folder and symbol.is_function:
                found[folder].add(symbol.name)
            elif not symbol.defined and "nvidia" not in path.parts[-4:]:
                found[folder].add(symbol.name)
    return found


def harvest_bindings(environment):
    """folder -> names that NVIDIA's Python bindings look up at run time: they are ahead of the headers."""
    found = {folder: set() for folder in cuda_names.FOLDERS}
    for path in environment.glob("cuda/bindings/_internal/*.so"):
        for name in elf_names.strings(path, cuda_names.ANY_BYTES):
            if cuda_names.is_function(name):
                found[cuda_names.folder_of(name)].add(name)
    return found


def harvest_pynvml(environment):
    """NVML names that pynvml (nvidia-ml-py) looks up."""
    path = environment / "pynvml.py"
    if not path.exists():
        return set()
    return set(re.findall(r"""_nvmlGetFunctionPointer\(["'](\w+)["']\)""", path.read_text()))


def packages(environments):
    """folder -> {"package version"}: NVIDIA's packages that hold a header or a library of it."""
    found, owned = {folder: set() for folder in cuda_names.FOLDERS}, cuda_names.sonames()
    for package in importlib.metadata.distributions(path=[str(environment) for environment in environments]):
        name = package.metadata["Name"]
        for path in package.files or () if name.startswith("nvidia-") else ():
            folders = {folder for folder, patterns in HEADERS.items() if any(path.match(pattern) for pattern in patterns)}
            folders |= {owned[path.name]} if path.name in owned else set()
            folders |= {"nvml"} if path.name == "pynvml.py" else set()
            for folder in folders:
                found[folder].add("%s %s" % (name, package.version))
    return found


HEAD = """# SPDX-License-Identifier: Apache-2.0
# Every function of {library} that a header declares, a real library exports or a program is known to
# ask for, over all supported versions. `null`: returns a pointer or a size. The build refuses a name that has no row
# in {folder}.def. tools/harvest_names.py adds names. It has read, of NVIDIA's packages:
"""
SOURCE = "#   "
LIBRARY = {"driver": "the CUDA driver", "cudart": "the CUDA runtime", "cublas": "cuBLAS", "cublaslt": "cuBLASLt",
           "cudnn": "cuDNN", "cufft": "cuFFT", "curand": "cuRAND", "cusparse": "cuSPARSE", "cusparselt": "cuSPARSELt",
           "cusolver": "cuSOLVER", "nccl": "NCCL", "nvml": "NVML", "cupti": "CUPTI", "cufile": "cuFile",
           "nvshmem": "NVSHMEM", "nvtx": "NVTX", "nvrtc": "NVRTC"}


def write_names(folder, names, sources):
    """Adds `names` (name -> returns_pointer) and the packages they are from to the list of a folder. Returns how many
    were new."""
    path, listed = cuda_names.names_path(folder), cuda_names.read_names(folder)
    if path.exists():
        sources = sources | {line[len(SOURCE):] for line in path.read_text().splitlines() if line.startswith(SOURCE)}
    lines = [SOURCE + source for source in sorted(sources)]
    lines += [name + " null" * bool(listed.get(name) or names.get(name)) for name in sorted({*listed, *names})]
    path.write_text(HEAD.format(library=LIBRARY[folder], folder=folder) + "\n".join(lines) + "\n")
    return len(set(names) - set(listed))


def main():
    parser = argparse.ArgumentParser(description="complete the lists of names from headers and environments")
    parser.add_argument("--headers", type=pathlib.Path, nargs="*", default=[], metavar="DIR")
    parser.add_argument("--environment", type=pathlib.Path, nargs="*", default=[], metavar="SITE_PACKAGES")
    parser.add_argument("--only", nargs="*", default=cuda_names.FOLDERS, metavar="FOLDER")
    arguments = parser.parse_args()
    tables = harvest_headers(list(arguments.headers) + list(arguments.environment))
    for name in COMPILER:
        tables["cudart"].setdefault(name, None)
    for name in PROFILER:
        tables["driver"].setdefault(name, None)
    for environment in arguments.environment:
        for harvest in (harvest_environment, harvest_bindings):
            for folder, names in harvest(environment).items():
                for name in names:
                    tables[folder].setdefault(name, None)
        for name in harvest_pynvml(environment):
            tables["nvml"].setdefault(name, None)
    sources = packages(arguments.environment)
    for folder in arguments.only:
        new = write_names(folder, tables[folder], sources[folder])
        print("%-11s %5d names, %d new" % (folder, len(cuda_names.read_names(folder)), new))
    return 0


if __name__ == "__main__":
    sys.exit(main())
