"""What `make dist` does: what a release holds, whether it works outside of the checkout, how large and quick it is."""
