"""Prometheus' text format, written so that its rules hold whatever is measured; judged by Prometheus' own checker."""

from __future__ import annotations

import subprocess

from metrics_parts.exported import samples, value
from streamhouse.runtime.measures import Histogram
from streamhouse.server.metrics.exposition import Family, by_label, counter, gauge, histogram, written


def test_a_value_has_its_help_its_type_and_its_labels() -> None:
    text = written([counter("a_total", "How many.", 3), gauge("b_bytes", "How large.", 1.5, {"x": "y", "z": ""})])
    assert text.splitlines() == [
        "# HELP a_total How many.",
        "# TYPE a_total counter",
        "a_total 3",
        "# HELP b_bytes How large.",
        "# TYPE b_bytes gauge",
        'b_bytes{x="y",z=""} 1.5',
    ]


def test_each_bucket_of_a_histogram_counts_those_below_it_too() -> None:
    values = Histogram((1.0, 2.5))
    for each in (0.5, 1.5, 1.5, 9.0):
        values.observe(each)
    text = written([histogram("a_seconds", "How long.", values)])
    assert [value(text, "a_seconds_bucket", le=bound) for bound in ("1", "2.5", "+Inf")] == [1, 3, 4]
    assert (value(text, "a_seconds_sum"), value(text, "a_seconds_count")) == (12.5, 4)


def test_labels_may_hold_anything() -> None:
    hostile = 'a "quoted"\\ group\nof two lines } 7'
    (sample,) = samples(written([by_label("gauge", "a", "What.", "group", {hostile: 1})]))
    assert sample.labels["group"] == hostile.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def test_prometheus_own_checker_takes_it() -> None:
    values = Histogram()
    values.observe(0.2)
    text = written(
        [
            counter("some_requests_total", "How many.", 3),
            by_label("gauge", "some_bytes", "How large.", "group", {'"\\\n': 1.25, "ä": 1e300}),
            Family("some_seconds", "histogram", "How long.", [({"listener": "kafka"}, values)]),
        ]
    )
    outcome = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")
