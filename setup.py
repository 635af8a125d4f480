"""Builds the compiled kernels; each has a pure-Python twin, so a machine without a compiler still installs."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

SOURCES = sorted(Path("src/streamhouse").rglob("*.pyx"))


def kernel(source: Path) -> Extension:
    module = ".".join(source.relative_to("src").with_suffix("").parts)
    return Extension(
        module,
        [str(source)],
        include_dirs=["src/streamhouse/format"],
        extra_compile_args=["-O3"],
        extra_link_args=["-lpthread"],
        optional=True,
    )


setup(
    ext_modules=cythonize(
        [kernel(source) for source in SOURCES],
        compiler_directives={"language_level": "3", "boundscheck": False, "wraparound": False},
    )
)
