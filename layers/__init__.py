"""The networks by hand that several scripts use: each an equation, forward and backward."""
