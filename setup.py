"""Builds the compiled kernels; each has a pure-Python twin, so a machine without a compiler still installs."""

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = sorted(Path("src/streamhouse").rglob("*.pyx"))


def kernel(source: Path) -> Extension:
    module = ".".join(source.relative_to("src").with_suffix("").parts)
    return Extension(
        module,
        [str(source)],
        include_dirs=["src/streamhouse/format"],
        extra_compile_args=["-O3"],
        extra_link_args=["-lpthread"],
    )


class BuildKernels(build_ext):
    """Goes on without those that cannot be built, whatever a compiler, or the lack of one, does. An extension's own
    `optional` is no help: setuptools lets some of these errors through."""

    def run(self) -> None:
        self.missing: list[str] = []
        super().run()
        if self.missing:
            # pip shows it with -v. A node says it as well, whenever it starts.
            self.warn(
                f"{len(self.missing)} of {len(SOURCES)} kernels of streamhouse could not be compiled: "
                f"{', '.join(self.missing)}. It works without them and is many times slower. "
                "Install a C compiler (gcc) and the headers of Python, and install streamhouse again."
            )

    def build_extension(self, ext: Extension) -> None:
        # Then what looks for its file afterwards does not miss it.
        ext.optional = True
        try:
            super().build_extension(ext)
        except Exception as problem:
            self.warn(f"{ext.name} could not be compiled: {problem}")
            self.missing.append(ext.name)


setup(
    cmdclass={"build_ext": BuildKernels},
    ext_modules=cythonize(
        [kernel(source) for source in SOURCES],
        compiler_directives={"language_level": "3", "boundscheck": False, "wraparound": False},
    ),
)
