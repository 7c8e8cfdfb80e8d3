#!/usr/bin/env python3
"""Tests the parsers of the profiler's and the sanitizer's output, including that they can fail. Run by ctest as `gpu_reports`."""
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parents[1] / "tools")]
import gpu_bytes  # noqa: E402

TABLE = '''==PROF== Disconnected
"ID","Process ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum"
"","","","byte","byte","ns"
"0","7","void inferno::cuda::stream_kernel<inferno::cuda::<unnamed>::Codec, 1>(inferno::cuda::StreamCall)","1,000,000","32","900"
"1","7","graph","2706100000","64","1100"
'''


class Bytes(unittest.TestCase):
    def test_rows_are_read_and_units_are_not(self):
        rows = gpu_bytes.rows_of(TABLE)
        self.assertEqual([gpu_bytes.number(row[gpu_bytes.READ]) for row in rows], [1e6, 2706100000.0])
        self.assertEqual(gpu_bytes.rows_of("==ERROR== ERR_NVGPUCTRPERM\n"), [])

    def test_limits_are_those_of_the_design(self):
        self.assertAlmostEqual(sum(gpu_bytes.gpt_oss_20b(0).values()) / 1e6, 3705.8, places=1)
        self.assertAlmostEqual(sum(gpu_bytes.gpt_oss_20b(16384).values()) / 1e6, 4111.6, places=1)
        self.assertAlmostEqual(sum(gpu_bytes.llama_1b(2048).values()) / 1e6, 2538.6, places=1)

    def verdict(self, read):
        """The verdict of the whole script, with an `ncu` that reports `read` bytes for a token."""
        with tempfile.TemporaryDirectory() as folder:
            ncu = pathlib.Path(folder) / "ncu"
            ncu.write_text(f'#!/bin/sh\nwhile [ "$1" != --log-file ]; do shift; done\ncat > "$2" <<X\n{TABLE.replace("2706100000", str(read))}X\n')
            ncu.chmod(ncu.stat().st_mode | stat.S_IXUSR)
            return subprocess.run([sys.executable, gpu_bytes.__file__, "inferno", "--shapes", "gpt-oss-20b"], capture_output=True, text=True,
                                  env={"PATH": f"{folder}:/usr/bin:/bin"}).returncode

    def test_more_or_less_than_the_limit_fails(self):
        self.assertEqual(self.verdict(3_705_000_000), 0)
        self.assertEqual(self.verdict(3_900_000_000), 1)
        self.assertEqual(self.verdict(3_500_000_000), 1)


class Sanitizers(unittest.TestCase):
    def verdict(self, finding="", missing="", old=""):
        """Of the whole script, with a `compute-sanitizer` that finds something with one tool, and programs of which one is missing or has
        other tests."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "racecheck").mkdir()
            for program in ("ops_cuda_test", "parity_cuda_test", "racecheck/ops_cuda_test", "racecheck/parity_cuda_test", "compute-sanitizer"):
                if program == missing:
                    continue
                path = folder / program
                path.write_text(f"#!/bin/sh\necho '  Test{program == old}'\n" if program != "compute-sanitizer" else
                                f'#!/bin/sh\n[ "$1" = --tool ] && [ "$2" = "{finding}" ] && exit 9\necho fine\n')
                path.chmod(path.stat().st_mode | stat.S_IXUSR)
            return subprocess.run(["sh", HERE / "sanitize.sh", folder, folder / "logs"], capture_output=True, text=True,
                                  env={"PATH": f"{folder}:/usr/bin:/bin"}).returncode

    def test_nothing_found_is_success(self):
        self.assertEqual(self.verdict(), 0)

    def test_whatever_a_tool_finds_is_an_error(self):
        for tool in ("memcheck", "racecheck", "initcheck", "synccheck"):
            self.assertEqual(self.verdict(finding=tool), 1, tool)

    def test_a_program_of_another_build_is_an_error(self):
        for program in ("racecheck/ops_cuda_test", "racecheck/parity_cuda_test"):
            self.assertEqual(self.verdict(old=program), 1, program)

    def test_a_missing_program_is_an_error(self):
        for program in ("ops_cuda_test", "parity_cuda_test", "racecheck/ops_cuda_test", "racecheck/parity_cuda_test"):
            self.assertEqual(self.verdict(missing=program), 1, program)


if __name__ == "__main__":
    unittest.main()
