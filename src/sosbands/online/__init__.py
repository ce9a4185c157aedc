"""Rows that come one after another: intervals that follow them, a test for drift, and both along a stream."""

from sosbands.online.adaptive import AdaptiveIntervals, Followed
from sosbands.online.drift import DriftTest
from sosbands.online.monitoring import Monitoring, monitor

__all__ = ["AdaptiveIntervals", "DriftTest", "Followed", "Monitoring", "monitor"]
