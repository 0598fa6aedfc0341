"""Which thought goes back where: pure.

`match` finds the logged turn that a client echoes, `guard` says what may go to a target and how it
is spelled there, `decide` makes a decision about every output of a request.
"""
