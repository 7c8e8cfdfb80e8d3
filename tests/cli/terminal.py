"""A pseudo-terminal that runs a program, and the screen a user would see: a minimal VT100."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time


class Screen:
    """The text on the screen, with the cursor movements that line_view.cpp uses. Every other escape sequence
    except colours and paste marks is an error: that is part of what is tested."""

    def __init__(self, columns, rows):
        self.columns, self.height = columns, rows
        self.lines, self.row, self.column = [""], 0, 0
        self.held = ""

    def feed(self, text):
        text = self.held + text
        self.held = ""
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                clipboard = re.compile(r"\x1b\]52;c;[A-Za-z0-9+/=]*\x07").match(text, at)
                if clipboard:
                    at = clipboard.end()
                    continue
                found = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])").match(text, at)
                if not found:
                    if len(text) - at < 16:
                        self.held = text[at:]
                        return
                    raise AssertionError(f"strange escape sequence {text[at:at + 16]!r}")
                self.escape(found[1], found[2])
                at = found.end()
            else:
                self.put(text[at])
                at += 1

    def escape(self, arguments, kind):
        count = int(arguments) if arguments.isdigit() else 1
        if kind == "A":
            self.row = max(0, self.row - count)
        elif kind == "F":
            self.row, self.column = max(0, self.row - count), 0
        elif kind == "C":
            self.column += count
        elif kind == "F":
            self.row, self.column = max(0, self.row - count), 0
        elif kind == "J" and arguments == "2":
            self.lines, self.row, self.column = [""], 0, 0
        elif kind == "J":
            del self.lines[self.row + 1:]
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif kind == "K":
            self.lines[self.row] = self.lines[self.row][: self.column]
        elif kind == "H":
            self.row = self.column = 0
        elif kind not in "mhl":
            raise AssertionError(f"unexpected escape sequence {arguments}{kind}")

    def put(self, letter):
        if letter == "\n":
            self.row += 1
            self.column = 0
            while len(self.lines) <= self.row:
                self.lines.append("")
        elif letter == "\r":
            self.column = 0
        elif ord(letter) < 0x20 and letter != "\t":
            raise AssertionError(f"control character {letter!r}")
        else:
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + letter + line[self.column + 1:]
            self.column += 1

    def text(self):
        return "\n".join(self.lines)


class Terminal:
    """Runs a program on its own terminal."""

    def __init__(self, arguments, environment, columns=200, rows=50, cwd=None):
        self.process, self.file = pty.fork()
        if self.process == 0:
            try:
                if cwd:
                    os.chdir(cwd)
                os.execve(arguments[0], arguments, environment)
            finally:
                os._exit(127)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen = Screen(columns, rows)
        self.raw = b""
        self.decoder_rest = b""
        self.status = None

    def pump(self, seconds):
        """Reads what is available; False if the program closed the terminal."""
        ready, _, _ = select.select([self.file], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.file, 65536)
        except OSError:
            return False
        if not data:
            return False
        self.raw += data
        data = self.decoder_rest + data
        for cut in range(len(data), max(len(data) - 4, -1), -1):
            try:
                text = data[:cut].decode()
                break
            except UnicodeDecodeError:
                continue
        else:
            raise AssertionError(f"not UTF-8: {data!r}")
        self.decoder_rest = data[cut:]
        self.screen.feed(text)
        return True

    def wait_for(self, pattern, seconds=20, after=0):
        """Waits until the screen shows the pattern at or after offset `after`; returns the match."""
        end = time.monotonic() + seconds
        while True:
            found = re.compile(pattern, re.MULTILINE).search(self.screen.text(), after)
            if found:
                return found
            if time.monotonic() > end:
                raise AssertionError(f"{pattern!r} never came; the screen:\n{self.screen.text()}")
            if not self.pump(0.05):
                found = re.compile(pattern, re.MULTILINE).search(self.screen.text(), after)
                if found:
                    return found
                raise AssertionError(f"the program ended before {pattern!r}; the screen:\n{self.screen.text()}")

    def send(self, text):
        os.write(self.file, text if isinstance(text, bytes) else text.encode())

    def settings(self):
        return termios.tcgetattr(self.file)

    def signal(self, number):
        os.kill(self.process, number)

    def ended(self, seconds=20):
        """Waits for the program to end; returns its exit code, or minus the signal."""
        end = time.monotonic() + seconds
        while self.status is None:
            self.pump(0.05)
            done, status = os.waitpid(self.process, os.WNOHANG)
            if done:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise AssertionError(f"the program does not end; the screen:\n{self.screen.text()}")
        while self.pump(0):
            ready, _, _ = select.select([self.file], [], [], 0)
            if not ready:
                break
        return self.status

    def close(self):
        if self.status is None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.file)
