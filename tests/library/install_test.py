"""What `cmake --install` copies is enough to compile against: install_test.py BUILD_FOLDER"""
import os
import pathlib
import sys
import tempfile

from toolbox import BUILTIN, ROOT, run, tool

BUILD = sys.argv[1]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
find_package(inferno REQUIRED)
add_executable(shared question.c)
target_link_libraries(shared PRIVATE inferno::inferno)
add_executable(static question.c)
target_link_libraries(static PRIVATE inferno::static)
file(WRITE ${CMAKE_BINARY_DIR}/builtin_model "${inferno_BUILTIN_MODEL}")
"""


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prefix, project = folder / "prefix", folder / "project"
        for component in ("library", "dev"):
            run(tool("cmake"), "--install", BUILD, "--prefix", prefix, "--component", component)
        found = {file.relative_to(prefix).name for file in prefix.rglob("*") if not file.is_dir()}
        wanted = {"inferno.h", "inferno.hpp", "libinferno.a", "libinferno.so", "libinferno.so.0", "inferno.pc", "inferno-config.cmake"}
        assert wanted <= found, wanted - found
        project.mkdir()
        (project / "CMakeLists.txt").write_text(PROJECT)
        (project / "question.c").write_text((ROOT / "examples/c/question.c").read_text())
        run(tool("cmake"), "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}")
        run(tool("cmake"), "--build", project / "build")
        installed_model = (project / "build/builtin_model").read_text()
        assert pathlib.Path(installed_model).is_relative_to(prefix), installed_model
        answers = {run(project / "build" / kind, installed_model, "Hello") for kind in ("shared", "static")}
        # pkg-config finds what was installed here, although the build was configured for another prefix, and after a move.
        moved = prefix.rename(folder / "moved")
        libdir = next(moved.rglob("libinferno.so")).parent
        environment = {**os.environ, "PKG_CONFIG_PATH": str(libdir / "pkgconfig"), "LD_LIBRARY_PATH": str(libdir)}
        for kind in ("--shared", "--static"):
            flags = run(tool("pkg-config"), kind, "--cflags", "--libs", "inferno", env=environment).split()
            assert "-lcrypto" not in flags, flags
            if kind == "--static":
                flags[flags.index("-linferno")] = "-l:libinferno.a"
            run(tool("gcc"), "-std=c99", project / "question.c", *flags, "-o", folder / "by-pkg-config")
            model = run(tool("pkg-config"), "--variable=builtin_model", "inferno", env=environment).strip()
            assert pathlib.Path(model).resolve().is_relative_to(moved), model
            answers.add(run(folder / "by-pkg-config", model, "Hello", env=environment))
        answers.add(run(folder / "by-pkg-config", BUILTIN, "Hello", env=environment))
        assert len(answers) == 1 and len(answers.pop()) > 10, answers


main()
