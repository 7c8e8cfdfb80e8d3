"""What the tests of the library share: running programs, and a stop if one of them is missing."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEADER = ROOT / "include/inferno/inferno.h"
BUILTIN = ROOT / "models/builtin"


def tool(*names):
    """The first of these programs that exists. Without one the test is skipped; in CI it fails."""
    for name in names:
        if found := shutil.which(name):
            return found
    print(f"{names[0]} is missing: ./dev install library")
    sys.exit(1 if os.environ.get("CI") else 77)


def run(*command, code=0, is_silent=False, **options):
    """Standard output of the command, which must end with this exit code, and if it is silent with nothing on standard error."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=280, **options)
    assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    assert not is_silent or not done.stderr, done.stderr
    return done.stdout


def declared(header=HEADER.read_text()):
    """{name: (result, parameters)} of every function in the header."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = re.findall(r"INFERNO_API\s+([\w\s*]+?)(inferno_\w+)\(([^;]*)\);", text)
    return {name: (result.strip(), " ".join(parameters.split())) for result, name, parameters in found}
