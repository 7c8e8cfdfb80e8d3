#!/usr/bin/env python3
"""Runs `inferno doctor` in unusual, empty and broken environments: it always reports and never crashes.

Usage: doctor_test.py PROGRAM FAKE_DRIVER_FOLDER
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, FAKE_DRIVER = (str(pathlib.Path(argument).resolve()) for argument in sys.argv[1:3])
# A sanitizer's settings must survive an otherwise empty environment, and nobody's configuration may be read.
KEPT = {**{name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}, "INFERNO_CONFIG": ""}


def doctor(*arguments, environment=None, **options):
    result = subprocess.run([PROGRAM, "doctor", *arguments], env={**KEPT, **(environment or {})}, timeout=60,
                            stdin=subprocess.DEVNULL, capture_output=True, check=False, **options)
    return result.returncode, result.stdout.decode("utf-8", "replace"), result.stderr.decode("utf-8", "replace")


def findings(*arguments, environment=None):
    code, out, _ = doctor("--json", *arguments, environment=environment)
    return code, {check["check"]: check for check in json.loads(out)["checks"]}


def with_driver(**settings):
    return {"HOME": "/tmp", "LD_LIBRARY_PATH": FAKE_DRIVER, **settings}


class Doctor(unittest.TestCase):
    def test_the_table_has_a_line_for_each_check_and_counts(self):
        code, out, err = doctor(environment={"HOME": "/tmp"})
        self.assertEqual((code, err), (0, ""))
        for check in ("inferno", "cpu", "memory", "gpu", "cache", "settings", "models"):
            self.assertRegex(out, rf"(?m)^ (ok|warn)\s+{check}\s")
        self.assertRegex(out, r"\d warnings?, 0 errors \(")

    def test_it_ends_with_what_the_machine_is_good_for(self):
        code, out, _ = doctor(environment={"HOME": "/tmp"})
        self.assertEqual(code, 0)
        lines = out.splitlines()
        start = lines.index("this machine is good for:")
        self.assertIn(len(lines) - start - 1, (1, 2, 3))
        names = [re.fullmatch(r"  inferno play (\S+) +about [\d.]+ tok/s, [\d.]+ [MG]B( to download|, on this machine)", line)[1]
                 for line in lines[start + 1:]]
        code, found = findings(environment={"HOME": "/tmp"})
        facts = found["models"]["facts"]
        self.assertGreater(facts["bandwidth"], 1e8)
        # The names are those of the program's own table, and the speed follows from the size.
        table = (pathlib.Path(__file__).resolve().parents[2] / "src/hub/names/aliases.txt").read_text(encoding="utf-8")
        for name in names:
            self.assertRegex(table, rf"(?m)^{re.escape(name)} ")
        for model in facts["recommended"]:
            self.assertEqual(model["command"], f"inferno play {model['name']}")
            self.assertGreaterEqual(model["tokens_per_second"], 0.5 * facts["bandwidth"] / model["bytes"])

    def test_json_has_the_same_facts(self):
        code, found = findings(environment={"HOME": "/tmp"})
        self.assertEqual(code, 0)
        self.assertGreaterEqual(found["cpu"]["facts"]["threads"], 1)
        self.assertGreater(found["memory"]["facts"]["total_bytes"], 1 << 20)
        self.assertEqual(found["cache"]["facts"]["path"], "/tmp/.cache/huggingface/hub")

    def test_help_and_bad_arguments(self):
        self.assertEqual(doctor("--help")[0], 0)
        self.assertEqual(doctor("--colour")[0], 2)
        self.assertEqual(doctor("--device", "abacus")[0], 2)

    def test_an_empty_environment_is_no_problem(self):
        self.assertEqual(doctor(environment={})[0], 0)

    def test_odd_locales_and_masks_change_nothing(self):
        environment = {"HOME": "/tmp", "LC_ALL": "xx_YY.junk", "LANG": "\xff", "TZ": ":/nowhere"}
        self.assertEqual(doctor(environment=environment)[0], 0)
        for mask in (0o000, 0o077, 0o777):
            self.assertEqual(doctor(environment=environment, umask=mask)[0], 0)

    def test_control_characters_are_escaped(self):
        code, out, _ = doctor(environment={"HF_HOME": "/tmp/\x1b[31mred\x9b\u202e"})
        self.assertEqual(code, 0)
        self.assertNotIn("\x1b", out)
        self.assertIn("\\x1b[31mred", out)

    def test_a_folder_name_that_is_not_utf8_keeps_json_valid(self):
        result = subprocess.run([PROGRAM.encode(), b"doctor", b"--json"], env={**{k.encode(): v.encode() for k, v in KEPT.items()}, b"HF_HOME": b"/tmp/\xff\xfe"},
                                capture_output=True, check=False, timeout=60)
        self.assertEqual(result.returncode, 0)
        json.loads(result.stdout.decode("utf-8"))

    def test_a_cache_folder_that_cannot_be_written_is_a_warning(self):
        with tempfile.NamedTemporaryFile() as file:
            code, found = findings(environment={"HF_HOME": file.name})
        self.assertEqual(code, 0)
        self.assertEqual(found["cache"]["verdict"], "warn")
        self.assertIn("HF_HOME", found["cache"]["next"])

    def test_a_very_long_setting_is_survived(self):
        self.assertEqual(doctor(environment={"HF_HOME": "/x" * 50_000})[0], 0)

    def test_output_into_a_closed_pipe_is_no_crash(self):
        with subprocess.Popen([PROGRAM, "doctor"], stdout=subprocess.PIPE, env={**KEPT, "HOME": "/tmp"}) as process:
            process.stdout.close()
            self.assertIn(process.wait(60), (0, -13, 6))


class Gpu(unittest.TestCase):
    def gpu(self, *arguments, **settings):
        code, found = findings(*arguments, environment=with_driver(**settings))
        return code, next(check for name, check in found.items() if name.startswith("gpu"))

    def test_a_device_is_described(self):
        code, gpu = self.gpu()
        self.assertEqual(code, 0)
        self.assertEqual(gpu["check"], "gpu 0")
        self.assertEqual(gpu["facts"]["name"], "NVIDIA Fake 9000")
        self.assertEqual(gpu["facts"]["compute_capability"], "9.0")
        self.assertEqual(gpu["facts"]["driver_version"], "580.95.05")

    def test_every_fault_has_a_cause_a_remedy_and_its_own_words(self):
        faults = [
            {"FAKE_CUDA_INIT": "100"},
            {"FAKE_CUDA_INIT": "100", "CUDA_VISIBLE_DEVICES": "junk"},
            {"FAKE_CUDA_INIT": "803"},
            {"FAKE_CUDA_INIT": "802"},
            {"FAKE_CUDA_INIT": "999"},
            {"FAKE_CUDA_INIT": "34"},
            {"FAKE_CUDA_MAJOR": "3"},
        ]
        summaries = set()
        for fault in faults:
            code, gpu = self.gpu(**fault)
            self.assertEqual((code, gpu["verdict"]), (0, "warn"), fault)
            self.assertIn("not usable", gpu["summary"], fault)
            self.assertTrue(gpu["next"], fault)
            summaries.add(gpu["summary"])
        self.assertEqual(len(summaries), len(faults))

    def test_a_gpu_that_must_work_and_does_not_is_exit_code_7(self):
        for fault in ({"FAKE_CUDA_INIT": "100"}, {"FAKE_CUDA_MAJOR": "3"}):
            code, gpu = self.gpu("--device", "cuda", **fault)
            self.assertEqual((code, gpu["verdict"]), (7, "fail"), fault)
        code, _, err = doctor("--device", "cuda", environment=with_driver(FAKE_CUDA_INIT="100"))
        self.assertEqual(code, 7)
        self.assertRegex(err, r"(?m)^error: gpu: ")
        self.assertRegex(err, r"(?m)^next: ")

    def test_memory_errors_are_a_warning(self):
        _, gpu = self.gpu(FAKE_NVML_ERRORS="2")
        self.assertEqual(gpu["verdict"], "warn")
        self.assertEqual(gpu["facts"]["uncorrected_memory_errors"], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
