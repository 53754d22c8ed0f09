"""Casts that make gradients smaller while they travel."""

import torch


class Compressor:
    """A pair of functions around a reduction; subclass it for a compression of your own."""

    @staticmethod
    def compress(tensor):
        """Returns what is to travel, and whatever decompress() needs."""
        raise NotImplementedError

    @staticmethod
    def decompress(tensor, ctx):
        """Undoes compress()."""
        raise NotImplementedError


class NoneCompressor(Compressor):
    """Sends tensors as they are."""

    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, ctx):
        return tensor


class _CastCompressor(Compressor):
    _wire_dtype = None

    @classmethod
    def compress(cls, tensor):
        if tensor.dtype.is_floating_point and tensor.dtype != cls._wire_dtype:
            return tensor.to(cls._wire_dtype), tensor.dtype
        return tensor, None

    @classmethod
    def decompress(cls, tensor, ctx):
        return tensor if ctx is None else tensor.to(ctx)


class FP16Compressor(_CastCompressor):
    """Sends floating-point tensors as float16: above 65504 they become infinite."""

    _wire_dtype = torch.float16


class BF16Compressor(_CastCompressor):
    """Sends floating-point tensors as bfloat16: float32's range with 8 bits of precision."""

    _wire_dtype = torch.bfloat16


class Compression:
    """The compressions to choose from, for ``compression=`` arguments."""

    none = NoneCompressor
    fp16 = FP16Compressor
    bf16 = BF16Compressor
