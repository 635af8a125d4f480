"""`streamhouse pipeline …`: run data pipelines on Spark, check them, see how they are, stop them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import count_of, print_json, print_line, print_table
from streamhouse.cli.options import as_duration_ms, json_option
from streamhouse.cli.spark_node import spark_node_option
from streamhouse.model.errors import InvalidConfig
from streamhouse.model.extras import install_hint

if TYPE_CHECKING:
    from streamhouse.spark.pipelines.model import Pipeline
    from streamhouse.spark.pipelines.problems import Problems
    from streamhouse.spark.pipelines.registry import Registry

_node_option = spark_node_option("the file's `endpoint`")


@click.group(short_help="Run, check, list and stop data pipelines on Spark.")
def pipeline() -> None:
    """Run, check, list and stop data pipelines on Spark.

    A pipeline is a YAML file: sources, steps and sinks; see docs/pipelines.md.

    \b
    Examples:
      streamhouse pipeline validate revenue.yaml
      streamhouse pipeline run revenue.yaml
      streamhouse pipeline status revenue
    """


@pipeline.command(short_help="Run a pipeline until it is stopped.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--once", is_flag=True, help="Process what is there now, and end.")
@_node_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each micro-batch.")
def run(file: str, once: bool, bootstrap: str | None, as_json: bool) -> None:
    """Run a pipeline until Ctrl-C, SIGTERM or `pipeline stop`, or until it has done all (--once).

    It is checked first, as by `validate`: its node and topics before Spark is started. A run goes on where the last one
    stopped, from its checkpoint.

    \b
    Examples:
      streamhouse pipeline run revenue.yaml
      streamhouse pipeline run revenue.yaml --once --bootstrap a1.example.com:9092
      streamhouse pipeline run revenue.yaml --json | jq .lag
    """
    from streamhouse.cli.pipeline_run import run_pipeline

    checked = _reached(_read(file, bootstrap), runs=True)
    run_pipeline(checked, _registry(), once=once, as_json=as_json)


@pipeline.command(short_help="Check a pipeline without running it.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--offline", is_flag=True, help="Do not ask the node whether the topics exist.")
@_node_option
@json_option
def validate(file: str, offline: bool, bootstrap: str | None, as_json: bool) -> int:
    """Check a pipeline: keys, names, schemas, topics, SQL and functions. Nothing is read and nothing is written.

    Every problem is a line, FILE:LINE: what is wrong. The exit code is 1 if there are any.

    \b
    Examples:
      streamhouse pipeline validate revenue.yaml
      streamhouse pipeline validate revenue.yaml --offline --json
    """
    from streamhouse.spark.pipelines.problems import InvalidPipeline

    told: list[str] = []
    try:
        checked = _read(file, bootstrap)
        if not offline:
            checked = _reached(checked, runs=False)
        found = _check_places(checked, offline=offline)
        if not as_json:  # at once, as Spark takes its time to start
            told = found.lines()
            _print_lines(told)
        _check(checked, found)
    except InvalidPipeline as invalid:
        if as_json:
            problems = [{"line": problem.line, "message": problem.message} for problem in invalid.problems]
            print_json({"file": file, "valid": False, "problems": problems})
        else:
            _print_lines(line for line in invalid.lines() if line not in told)
        return 1
    if as_json:
        sinks = [{"name": sink.name, "guarantee": sink.guarantee.value} for sink in checked.sinks]
        print_json({"file": file, "valid": True, "name": checked.name, "sinks": sinks})
    else:
        parts = ((checked.sources, "source"), (checked.steps, "step"), (checked.sinks, "sink"))
        print_line(
            f"{file}: pipeline {checked.name} with {', '.join(count_of(len(part), noun) for part, noun in parts)}"
        )
        for sink in checked.sinks:
            print_line(f"sink {sink.name}: {sink.guarantee.value}")
    return 0


@pipeline.command("list", short_help="List this machine's pipelines.")
@json_option
def list_pipelines(as_json: bool) -> None:
    """List the pipelines that run on this machine, and those that have.

    \b
    Examples:
      streamhouse pipeline list
      streamhouse pipeline list --json
    """
    from streamhouse.cli.pipeline_report import record_as_json, summary_row

    records = _registry().records()
    if as_json:
        print_json([record_as_json(record) for record in records])
    elif records:
        headings = ("pipeline", "state", "pid", "started", "rows", "dead letters", "file")
        print_table(headings, [summary_row(record) for record in records])
    else:
        print_line("no pipelines yet; `streamhouse pipeline run FILE` starts one")


@pipeline.command(short_help="Show how a pipeline is.")
@click.argument("name")
@json_option
def status(name: str, as_json: bool) -> None:
    """Show how a pipeline is: its state, and the rows, lag, batch time and watermark of each sink.

    \b
    Examples:
      streamhouse pipeline status revenue
      streamhouse pipeline status revenue --json
    """
    from streamhouse.cli.pipeline_report import print_record, record_as_json

    record = _registry().find(name)
    if as_json:
        print_json(record_as_json(record))
    else:
        print_record(record)


@pipeline.command(short_help="Stop a running pipeline.")
@click.argument("name")
@click.option("--timeout", callback=as_duration_ms, default="60s", show_default=True, help="How long to wait for it.")
@json_option
def stop(name: str, timeout: int, as_json: bool) -> None:
    """Stop a pipeline that runs on this machine, and wait until it has ended.

    Micro-batches that are under way may finish. The next run goes on from there.

    \b
    Examples:
      streamhouse pipeline stop revenue
      streamhouse pipeline stop revenue --timeout 5m
    """
    was_running = _registry().stop(name, timeout_ms=timeout)
    if as_json:
        print_json({"pipeline": name, "was_running": was_running})
    else:
        print_line(f"pipeline {name} {'is stopped' if was_running else 'was not running'}")


def _read(file: str, bootstrap: str | None) -> Pipeline:
    try:
        from streamhouse.spark.pipelines.parsing import read_pipeline
    except ImportError as error:
        raise InvalidConfig(f"pipelines need {error.name}", hint=install_hint("spark")) from error

    return read_pipeline(file, os.environ, endpoint=bootstrap or None)


def _reached(read: Pipeline, *, runs: bool) -> Pipeline:
    from streamhouse.spark.pipelines.checking import reached

    return reached(read, runs=runs)


def _check_places(checked: Pipeline, *, offline: bool) -> Problems:
    from streamhouse.spark.pipelines.checking import check_places

    return check_places(checked, offline=offline)


def _check(checked: Pipeline, found: Problems) -> None:
    from streamhouse.cli.pipeline_run import open_pipeline_session
    from streamhouse.spark.pipelines.checking import check_pipeline

    with open_pipeline_session(checked) as session:
        check_pipeline(session, checked, found)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


def _registry() -> Registry:
    from streamhouse.spark.pipelines.registry import Registry, state_directory

    return Registry(state_directory(os.environ))
