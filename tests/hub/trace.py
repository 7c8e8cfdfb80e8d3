"""File system calls of a program, from strace, in the order of their completion."""
import os
import re
import subprocess

CALLS = ("open,openat,creat,mkdir,mkdirat,symlink,symlinkat,link,linkat,rename,renameat,renameat2,unlink,unlinkat,rmdir,truncate,"
         "ftruncate,fallocate,write,pwrite64,writev,pwritev,pwritev2,copy_file_range,sendfile,splice,fsync,fdatasync,sync_file_range,"
         "syncfs,chmod,fchmod,fchmodat,chown,fchown,utimensat,mknod,mknodat,close,mmap")
LINE = re.compile(r"^(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*)\) += (?P<result>-?\d+|\?)(?:<(?P<opened>[^>]*)>)?")
UNFINISHED = re.compile(r"^(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*) <unfinished \.\.\.>$")
RESUMED = re.compile(r"^(?P<pid>\d+) +<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)$")
DESCRIPTOR = re.compile(r"^(?:\d+|AT_FDCWD)<(?P<path>(?:\\.|[^>\\])*)>")
QUOTED = re.compile(r'"((?:\\.|[^"\\])*)"')


def is_allowed():
    """Whether strace works on this machine."""
    return subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True).returncode == 0


def wrapper(file, calls=CALLS, *more):
    # -y prints the file of each descriptor, -s 0 omits the content.
    return ("strace", "-f", "-y", "-qq", "-s", "0" if "write" in calls and not more else "4096", "-o", str(file), "-e", f"trace={calls}",
            "-e", "signal=none", *more)


class Call:
    def __init__(self, name, arguments, result, opened):
        self.name, self.arguments, self.result, self.opened = name, arguments, result, opened

    @property
    def file(self):
        """The file of the first descriptor."""
        found = DESCRIPTOR.match(self.arguments)
        return found and unescaped(found["path"])

    @property
    def paths(self):
        """The path arguments of the call, each with its folder."""
        found, folder = [], None
        for part in re.finditer(r'(?:\d+|AT_FDCWD)<(?P<folder>(?:\\.|[^>\\])*)>|"(?P<name>(?:\\.|[^"\\])*)"', self.arguments):
            if part["name"] is None:
                folder = unescaped(part["folder"])
            else:
                found.append(os.path.normpath(os.path.join(folder or "/", unescaped(part["name"]))))
                folder = None
        # The first path of a symlink call is only text.
        return found[1:] if self.name in ("symlink", "symlinkat") else found

    @property
    def writes(self):
        """Whether the call changes the file system."""
        if self.name in ("open", "openat"):
            return bool(re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", self.arguments))
        if self.name == "mmap":
            return "PROT_WRITE" in self.arguments and "MAP_SHARED" in self.arguments
        return self.name != "close"

    def __repr__(self):
        return f"{self.name}({self.arguments}) = {self.result}"


def unescaped(text):
    return re.sub(r"\\([0-7]{1,3}|.)", lambda found: chr(int(found[1], 8)) if found[1].isdigit() else
                  {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "f": "\f"}.get(found[1], found[1]), text)


def calls(file):
    """Every successful call."""
    found, begun = [], {}
    with open(file, encoding="utf-8", errors="surrogateescape") as lines:
        text = lines.read()
    for line in text.split("\n"):
        if cut := UNFINISHED.match(line):
            begun[cut["pid"]] = cut
            continue
        if again := RESUMED.match(line):
            cut = begun.pop(again["pid"], None)
            if cut is None:
                continue
            line = f"{cut['pid']} {cut['name']}({cut['rest']}{again['rest']}"
        whole = LINE.match(line)
        if whole and whole["result"] != "?" and int(whole["result"]) >= 0:
            found.append(Call(whole["name"], whole["rest"], int(whole["result"]), whole["opened"]))
    return found
