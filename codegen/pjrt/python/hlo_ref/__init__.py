"""A reference for JAX's results: programs of JAX judged by a correctly rounded interpreter with certified bounds.

    import hlo_ref

    hlo_ref.check(f, x, y, backend="cuda")     are the results of f on a back end within what rounding explains?
    hlo_ref.interpret(f)(x, y)                 f, each operation correctly rounded
    hlo_ref.explain(f, x, y)                   which line loses the accuracy, and where the first NaN is born

`JAX_PLATFORMS=hlo` runs JAX itself on this project's compiler, and with `HLO_MODE=check` judges every execution; `pytest --hlo-check` does that for a test suite.
"""

from .places import library, program

_LAZY = {
    "Array": "checking", "Instruction": "checking", "Report": "checking", "Wrong": "checking", "check": "checking",
    "Birth": "explaining", "Explanation": "explaining", "Loss": "explaining", "explain": "explaining",
    "interpret": "interpreting",
}
__all__ = [*_LAZY, "library", "program"]


def __getattr__(name):
    # JAX is imported when something needs it: the plugin asks this package where its library is while JAX starts.
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module("." + _LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
