"""The C core, which the build omits if it cannot compile it, the description for PyPI, and reproducible sdists."""

import gzip
import io
import os
import re
import sys
import tarfile
import tomllib
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.sdist import sdist

FLAGS = {"linux": ["-O3", "-fno-plt", "-fvisibility=hidden", "-g0"], "win32": ["/std:c11"]}
"""On Linux, every CPython builds with the same level, and calls go without a stub. Debug data would be four fifths of
the file."""

CORE = Extension(
    "kafka_msgs._core.extension",
    sorted(glob("kafka_msgs/_core/*.c")),
    depends=sorted(glob("kafka_msgs/_core/*.h")),
    extra_compile_args=FLAGS.get(sys.platform, []),
    optional=True,
)


RELATIVE_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")


def description():
    """Return the README. If ``[project.urls]`` has the GitHub repository, links lead to the files of the release there.

    PyPI shows the README without the files that it links to.
    """
    text = Path("README.md").read_text(encoding="utf-8")
    source = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {}).get("Source")
    if source is None:
        return text
    version = re.search(r'^__version__ = "(.+)"', Path("kafka_msgs/__init__.py").read_text(encoding="utf-8"), re.M)[1]

    def absolute(link):
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}[{link[2]}]({source.rstrip('/')}/{kind}/v{version}/{link[3]})"

    return RELATIVE_LINK.sub(absolute, text)


class ReproducibleSdist(sdist):
    """With ``SOURCE_DATE_EPOCH``, equal sources become equal archives: no owners, umask or times of the build."""

    def make_archive(self, *arguments, **options):
        path = super().make_archive(*arguments, **options)
        epoch = os.environ.get("SOURCE_DATE_EPOCH")
        if epoch and path.endswith(".tar.gz"):
            normalize(path, int(epoch))
        return path


def normalize(path, epoch):
    """Rewrite a compressed tar archive: sorted members, with names, contents and executable bits only."""
    written = io.BytesIO()
    with (
        tarfile.open(path) as source,
        gzip.GzipFile("", "wb", fileobj=written, mtime=epoch) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda member: member.name):
            member.pax_headers = {}
            mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            owner = {"uid": 0, "gid": 0, "uname": "", "gname": ""}
            target.addfile(
                member.replace(mtime=epoch, mode=mode, **owner, deep=False),
                source.extractfile(member) if member.isfile() else None,
            )
    with open(path, "wb") as file:
        file.write(written.getvalue())


if "SOURCE_DATE_EPOCH" in os.environ:
    os.umask(0o022)  # Files of a wheel have the modes that it allows.
setup(
    ext_modules=[CORE] if CORE.sources else [],
    cmdclass={"sdist": ReproducibleSdist},
    long_description=description(),
    long_description_content_type="text/markdown",
)
