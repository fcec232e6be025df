"""Filetests whose programs add up what they computed: what their generators write alike."""


def case(name, run, expected, entry):
    """A case: the entry computation `entry` of a program that has `add`, run as `run` says, gives `expected`."""
    return f"""// ==== {name}
// test: interpret
// origin: hand
// run: {run} == {expected}
HloModule m
add {{
  p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT r = s32[] add(p, q)
}}
ENTRY e {{
{entry}}}
"""
