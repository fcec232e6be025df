#!/usr/bin/env python3
"""Writes XLA's descriptors, as a wheel of TensorFlow carries them, as a FileDescriptorSet: what `hlo-protox-peer` takes where XLA's sources are not at hand.

    pip install tensorflow-cpu
    descriptors.py hlo.descriptors
"""
import sys

from google.protobuf import descriptor_pb2
from tensorflow.compiler.xla.service import hlo_pb2

files, seen = descriptor_pb2.FileDescriptorSet(), set()


def add(file):
    if file.name not in seen:
        seen.add(file.name)
        for other in file.dependencies:
            add(other)
        file.CopyToProto(files.file.add())


add(hlo_pb2.DESCRIPTOR)
with open(sys.argv[1], "wb") as out:
    out.write(files.SerializeToString())
