"""Installs the folder `cli` as `socratic_runner`: no other project's `cli` is in its way."""

from setuptools import find_namespace_packages, setup

FOLDERS = find_namespace_packages(include=["cli*", "socratic_bench*"], exclude=["*.__pycache__"])

setup(
    package_dir={"socratic_runner": "cli"},
    packages=["socratic_runner" + name[3:] if name[:3] == "cli" else name for name in FOLDERS],
)
