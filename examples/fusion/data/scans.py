"""Takes the scans out of a recording of the Mobile Robot Programming Toolkit (a rawlog): how corridor.scans was made.

    python3 scans.py RAWLOG FILE

FILE has of each scan 361 ranges, from 90 degrees to the right to 90 degrees to the left, as 16-bit numbers of
centimetres, the lower byte first; 0 is no echo.
"""

import gzip
import struct
import sys
from pathlib import Path

BEAMS = 361
SCAN = b"\x97CObservation2DRangeScan\x06"  # the sixth version of the class, as in recordings of 2006
HEADER = 9 + 157  # half the way round, from right to left, 80 m at most; then where the sensor is on the robot


def scans(rawlog: bytes) -> bytes:
    """The scans in the order in which they were taken."""
    found = bytearray()
    for part in rawlog.split(SCAN)[1:]:
        (beams,) = struct.unpack_from("<I", part, HEADER)
        if beams != BEAMS:
            raise SystemExit(f"a scan has {beams} ranges; {BEAMS} are expected")
        ranges = struct.unpack_from(f"<{BEAMS}f", part, HEADER + 4)
        valid = part[HEADER + 4 + 4 * BEAMS :][:BEAMS]
        found += struct.pack(
            f"<{BEAMS}H", *(round(100 * metres) * is_valid for metres, is_valid in zip(ranges, valid, strict=True))
        )
    return bytes(found)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_bytes(scans(gzip.decompress(source.read_bytes())))
