"""inferno tokenize and detokenize, as a shell sees them: commands_test.py INFERNO TOKENIZER_DIRECTORY"""
import json
import os
import pty
import subprocess
import sys
import unittest

PROGRAM, MODEL = sys.argv[1:3]
ODD = "  héllo\r\n\n日本 <|endoftext|> \t\x00x\n"


def run(*arguments, stdin=b""):
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, timeout=60)


def ids(*arguments, stdin=b""):
    done = run("tokenize", MODEL, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


class Tokenize(unittest.TestCase):
    def test_standard_input_is_taken_byte_for_byte(self):
        back = run("detokenize", MODEL, *map(str, ids(stdin=ODD.encode())))
        self.assertEqual(back.stdout, ODD.encode())
        self.assertEqual(back.stderr, b"")

    def test_text_and_standard_input_agree(self):
        self.assertEqual(ids("--text", "Once upon a time\n"), ids(stdin=b"Once upon a time\n"))
        self.assertNotEqual(ids(stdin=b"a\n"), ids(stdin=b"a"))

    def test_the_text_may_be_an_argument(self):
        self.assertEqual(ids("Once upon a time"), ids("--text", "Once upon a time"))
        self.assertIn(b"TEXT is one argument", run("tokenize", MODEL, "Once", "upon").stderr)

    def test_pieces_appear_on_a_terminal(self):
        def shown(*arguments):
            reader, writer = pty.openpty()
            subprocess.run([PROGRAM, "tokenize", MODEL, "Once upon", *arguments], stdout=writer, timeout=60, check=True)
            os.close(writer)
            with open(reader, "rb", buffering=0) as terminal:
                return terminal.read(4096).decode().replace("\r\n", "\n")
        pieces = run("tokenize", MODEL, "Once upon", "--pieces").stdout.decode()
        self.assertEqual(shown(), pieces)
        self.assertEqual(shown("--no-pieces"), run("tokenize", MODEL, "Once upon").stdout.decode())
        self.assertEqual(shown("--json"), run("tokenize", MODEL, "Once upon", "--json").stdout.decode())

    def test_an_empty_text_is_a_text(self):
        self.assertEqual(ids("--text", ""), [])

    def test_control_tokens_are_recognised_unless_plain(self):
        self.assertEqual(ids("--text", "<|endoftext|>"), [2])
        self.assertNotIn(2, ids("--plain", "--text", "<|endoftext|>"))

    def test_json(self):
        done = run("tokenize", MODEL, "--json", "--text", "<|endoftext|><|pad|>")
        self.assertEqual(done.stdout, b'{"ids":[2,0]}\n')
        self.assertEqual(json.loads(run("tokenize", MODEL, "--json", "--text", "").stdout), {"ids": []})

    def test_pieces_are_shown_with_their_ids(self):
        text = "Once <|endoftext|>"
        lines = run("tokenize", MODEL, "--pieces", "--text", text).stdout.decode().splitlines()
        self.assertEqual([int(line.split()[0]) for line in lines], ids("--text", text))
        self.assertIn('       2  "<|endoftext|>"', lines)
        both = json.loads(run("tokenize", MODEL, "--pieces", "--json", "--text", text).stdout)
        self.assertEqual(both["ids"], ids("--text", text))
        self.assertEqual("".join(both["pieces"]), text)
        # A part of a character is no text: it must not reach the terminal as it is.
        parts = run("tokenize", MODEL, "--pieces", "--text", "\U0001f525\x1b").stdout
        parts.decode("utf-8")
        self.assertNotIn(b"\x1b", parts)

    def test_text_that_is_not_utf8_is_the_callers_mistake(self):
        done = run("tokenize", MODEL, stdin=b"ab\xff")
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"error: text: expected UTF-8, found byte 0xFF at offset 2", done.stderr)

    def test_a_missing_model_is_not_found(self):
        done = run("tokenize", "/nonexistent/model", "--text", "x")
        self.assertEqual((done.returncode, done.stdout), (3, b""))
        self.assertIn(b"/nonexistent/model", done.stderr)


class Detokenize(unittest.TestCase):
    def test_ids_come_as_words_as_a_list_or_on_standard_input(self):
        word = ids("--text", "Hi there")
        for arguments in ([str(i) for i in word], [",".join(map(str, word))], [json.dumps(word)]):
            self.assertEqual(run("detokenize", MODEL, *arguments).stdout, b"Hi there")
        self.assertEqual(run("detokenize", MODEL, stdin=" ".join(map(str, word)).encode()).stdout, b"Hi there")

    def test_special_tokens_can_be_left_out(self):
        self.assertEqual(run("detokenize", MODEL, "1", "2").stdout, b"<|startoftext|><|endoftext|>")
        self.assertEqual(run("detokenize", MODEL, "--no-special", "1", "2").stdout, b"")

    def test_what_is_no_id_is_refused(self):
        for bad in ("512", "99999999999", "x", "1.5"):
            done = run("detokenize", MODEL, bad)
            self.assertEqual((done.returncode, done.stdout), (2, b""), bad)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
