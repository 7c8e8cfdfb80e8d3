"""One example, built and run: examples_test.py LANGUAGE INFERNO LIBRARY_FOLDER. Its answer is that of `inferno generate`."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

from toolbox import BUILTIN, ROOT, run, tool

LANGUAGE, PROGRAM, LIBRARIES = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
QUESTION = "Tell me a story."
INCLUDE, SOURCES = ROOT / "include", ROOT / "examples"
ENVIRONMENT = {**os.environ, "INFERNO_LIBRARY": str(LIBRARIES / "libinferno.so.0")}
LINK = [f"-L{LIBRARIES}", "-linferno", f"-Wl,-rpath,{LIBRARIES}"]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def c(folder):
    run(tool("gcc"), "-std=c99", *WARNINGS, f"-I{INCLUDE}", SOURCES / "c/question.c", *LINK, "-o", folder / "question")
    return run(folder / "question", BUILTIN, QUESTION, is_silent=True)


def cpp(folder):
    source = SOURCES / "cpp/chat.cpp"
    longer = folder / "longer.cpp"  # answers long enough to be interrupted
    longer.write_text(source.read_text().replace('"max_tokens", 40', '"max_tokens", 1000'))
    for file, program in ((source, "chat"), (longer, "longer")):
        run(tool("g++"), "-std=c++20", *WARNINGS, f"-I{INCLUDE}", file, *LINK, "-o", folder / program)
    check_interrupt(folder / "longer")
    return run(folder / "chat", BUILTIN, input=QUESTION + "\n").replace("> ", "")


def check_interrupt(chat):
    """Ctrl-C ends the answer, not the program."""
    with subprocess.Popen([chat, BUILTIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write(QUESTION.encode() + b"\n")
        said = b""
        while len(said) < 8:
            said += process.stdout.read(1)
        process.send_signal(signal.SIGINT)
        process.stdin.write(QUESTION.encode() + b"\n")
        process.stdin.close()
        said += process.stdout.read()
    assert process.returncode == 0 and said.count(b"> ") == 3, (process.returncode, said)
    first, second = (part.strip() for part in said.split(b"> ")[1:3])
    assert len(first) < len(second), said


def python(_):
    # Two questions side by side; the other answer comes first.
    both = run(sys.executable, SOURCES / "python/question.py", BUILTIN, "a", QUESTION, env=ENVIRONMENT)
    assert both.startswith(generated("a")), both
    return both.removeprefix(generated("a"))


def node(folder):
    if not (ROOT / "tests/node_modules/koffi").exists():
        tool("koffi of npm")
    # Modules are looked up beside the script.
    shutil.copy(SOURCES / "node/question.mjs", folder)
    (folder / "node_modules").symlink_to(ROOT / "tests/node_modules")
    return run(tool("node"), folder / "question.mjs", BUILTIN, QUESTION, env=ENVIRONMENT)


def go(folder):
    cache = LIBRARIES / "go-cache"
    run(tool("go"), "build", "-o", folder / "question", SOURCES / "go/question.go", cwd=folder,
        env={**os.environ, "GOCACHE": str(cache), "GOPATH": str(folder), "GOFLAGS": "", "GO111MODULE": "off",
             "CGO_CFLAGS": f"-I{INCLUDE}", "CGO_LDFLAGS": " ".join(LINK)})
    return run(folder / "question", BUILTIN, QUESTION)


def rust(folder):
    run(tool("rustc"), "--edition", "2021", "-D", "warnings", "-L", LIBRARIES, "-C", f"link-arg=-Wl,-rpath,{LIBRARIES}",
        "-o", folder / "question", SOURCES / "rust/question.rs")
    return run(folder / "question", BUILTIN, QUESTION)


def generated(question):
    return run(PROGRAM, "generate", "--chat", "-m", BUILTIN, "--max-tokens", "40", "--seed", "7", question)


def main():
    with tempfile.TemporaryDirectory() as name:
        found = globals()[LANGUAGE](pathlib.Path(name))
    expected = generated(QUESTION)
    assert len(expected) > 40 and found == expected, f"found\n{found}\nexpected\n{expected}"


main()
