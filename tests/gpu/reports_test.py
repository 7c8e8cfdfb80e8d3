#!/usr/bin/env python3
"""Shows that what reads the profiler's and the sanitizer's words understands them, and can fail. Run by ctest as `gpu_reports`."""
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parents[1] / "tools")]
import gpu_bytes  # noqa: E402
import race_report  # noqa: E402

TABLE = '''==PROF== Disconnected
"ID","Process ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.sum"
"","","","byte","byte","ns"
"0","7","void inferno::cuda::stream_kernel<inferno::cuda::<unnamed>::Codec, 1>(inferno::cuda::StreamCall)","1,000,000","32","900"
"1","7","graph","2706100000","64","1100"
'''
KERNEL = "void inferno::cuda::stream_kernel<inferno::cuda::<unnamed>::Codec, (inferno::cuda::StreamMode)1>(inferno::cuda::StreamCall)"
HAZARD = f'''========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at {KERNEL}+0x68f0
=========     and Read access at {KERNEL}+0x7ef0 [180292 hazards]
=========     and Read access at {KERNEL}+0x7f20 [185379 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (2 errors, 0 warnings)
'''
CODE = '''		Function : _ZN7inferno4cuda13stream_kernelI5CodecEEvNS0_10StreamCallE
        /*68f0*/              @!UPT UBLKCP [UR36], [UR4], UR8 ;  /* 0x0 */
        /*7ef0*/                    LDS.128 R4, [R2] ;           /* 0x0 */
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
        """Of the whole script, with an `ncu` that says a token read so many bytes."""
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


class Races(unittest.TestCase):
    def verdict(self, log, code=CODE):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "log").write_text(log)
            (folder / "code").write_text(code)
            tool = folder / "cuobjdump"
            tool.write_text(f'#!/bin/sh\ncat "{folder}/code"\n')
            tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
            return subprocess.run([sys.executable, race_report.__file__, "program", folder / "log"], capture_output=True, text=True,
                                  env={"PATH": f"{folder}:/usr/bin:/bin"}).returncode

    def test_a_bulk_copy_is_named_and_nothing_more(self):
        self.assertEqual(self.verdict(HAZARD), 0)

    def test_every_other_write_is_an_error(self):
        self.assertNotEqual(self.verdict(HAZARD, CODE.replace("UBLKCP", "STS")), 0)
        self.assertNotEqual(self.verdict(HAZARD.replace("0x68f0", "0x68e0")), 0)
        self.assertNotEqual(self.verdict(HAZARD.replace("and Read", "and Write")), 0)
        self.assertNotEqual(self.verdict(HAZARD.replace("stream_kernel<inferno::cuda::<unnamed>::Codec, (inferno::cuda::StreamMode)1>", "other", 1)), 0)

    def test_what_is_not_understood_is_an_error(self):
        self.assertNotEqual(self.verdict("killed\n"), 0)
        self.assertNotEqual(self.verdict("========= RACECHECK SUMMARY: 3 hazards displayed (3 errors, 0 warnings)\n"), 0)
        self.assertNotEqual(self.verdict(HAZARD + "[  FAILED  ] Ops.Test\n"), 0)


if __name__ == "__main__":
    unittest.main()
