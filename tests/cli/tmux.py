"""A real terminal for tests: a tmux server of its own with one window, in which a shell runs. Unlike terminal.py it breaks lines
anew when it is resized, as the terminals of users do."""
import pathlib
import re
import subprocess
import time


class TmuxScreen:
    def __init__(self, folder, columns, environment, rows=40):
        self.socket = str(pathlib.Path(folder) / "tmux")
        self.environment = environment
        self.rows = rows
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "env", "PS1=$ ", "sh")
        self.tmux("set-option", "-g", "status", "off")
        self.resize(columns)

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, *arguments], env=self.environment, capture_output=True, text=True, timeout=60).stdout

    def resize(self, columns):
        self.tmux("resize-window", "-x", str(columns), "-y", str(self.rows))

    def text(self):
        """What is on the screen and above it; lines that the terminal broke are joined."""
        return self.captured("-J")

    def rows_shown(self):
        """The same row by row, as they are seen."""
        return self.captured().split("\n")

    def captured(self, *options):
        lines = self.tmux("capture-pane", "-p", *options, "-S", "-2000").splitlines()
        return "\n".join(line.rstrip() for line in lines).rstrip("\n")

    def visible(self):
        """What is on the screen now, without what is above it."""
        return "\n".join(line.rstrip() for line in self.tmux("capture-pane", "-p").splitlines()).rstrip("\n")

    def coloured(self):
        """The rows on the screen with their colours, as escape sequences."""
        return self.tmux("capture-pane", "-p", "-e").splitlines()

    def type(self, text):
        self.tmux("send-keys", "-l", "--", text)

    def key(self, *names):
        self.tmux("send-keys", *names)

    def clear_history(self):
        self.tmux("clear-history")

    def until(self, found, what, seconds=90, meanwhile=lambda: time.sleep(0.03)):
        """Waits until found() is true; returns it."""
        end = time.monotonic() + seconds
        while True:
            if result := found():
                return result
            if time.monotonic() > end:
                raise AssertionError(f"{what} is not on the screen:\n{self.captured()}")
            meanwhile()

    def shows(self, pattern, seconds=90, **options):
        """Waits until the pattern is on the screen. Where it has a space, a line may have been broken."""
        def found():
            text = self.text()
            return re.search(pattern, text, re.MULTILINE) or re.search(pattern, re.sub(r"\n *", " ", text), re.MULTILINE)
        return self.until(found, repr(pattern), seconds, **options)

    def close(self):
        self.tmux("kill-server")
