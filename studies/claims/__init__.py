"""The sentences of the paper that rows can decide, by what they are about, and how a verdict is reached."""
