"""One corrected retry when a provider refuses a thought, or the lack of one.

`recover` runs it, `case` is the evidence, `strategies` maps what the provider said to what to try,
and there is one module of strategies per way that thoughts travel.
"""
