"""The library is without the built-in model and says so, and takes one from a folder that the caller names:
without_model_test.py LIBRARY_FOLDER"""
import ctypes
import json
import sys
import unittest
from ctypes import byref, c_size_t, c_uint64

from toolbox import BUILTIN

sys.argv.insert(1, "")  # of the command, which is not needed here
from same_test import Error, LoadOptions, call, load, must  # reads the folder of the library from sys.argv

UNSUPPORTED = 3


def options(**fields):
    return LoadOptions(size=ctypes.sizeof(LoadOptions), device=b"cpu", home=b"", **fields)


def listed(given):
    text = ctypes.create_string_buffer(1 << 16)
    must("list_models", byref(given), text, c_size_t(len(text)), None)
    return [model["name"] for model in json.loads(text.value)]


class WithoutModel(unittest.TestCase):
    def expect_advice(self, error):
        self.assertIsInstance(error, Error)
        self.assertEqual(error.status, UNSUPPORTED)
        self.assertIn(b"does not contain the built-in model", error.what)
        self.assertIn(b"INFERNO_LIBRARY_BUILTIN", error.why)
        self.assertIn(b"name another model", error.next)

    def test_the_error_tells_why_and_what_to_do(self):
        given, model = options(), c_uint64(7)
        self.expect_advice(call("model_load", b"builtin", byref(given), byref(model)))
        self.assertEqual(model.value, 0)
        self.expect_advice(call("self_test", byref(given), None, c_size_t(0), None))
        self.assertEqual(listed(given), [])
        self.assertEqual(call("model_load", b"no-such/model", byref(given), byref(model)).why, b"there are no models here")

    def test_a_folder_of_models_may_have_it(self):
        folders = str(BUILTIN.parent).encode()
        model = load("builtin", home=b"", model_folders=folders)
        must("model_unload", model)
        given = options(model_folders=folders)
        self.assertEqual(listed(given), ["builtin"])
        text = ctypes.create_string_buffer(512)
        must("self_test", byref(given), text, c_size_t(len(text)), None)
        self.assertIn(b"match the reference", text.value)


if __name__ == "__main__":
    unittest.main()
