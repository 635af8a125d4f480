"""Writes the functions that write structs."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_messages.definitions import Field, Struct
from kafka_messages.layout import FIXED, default_expression, is_fixed
from kafka_messages.plan import Nullability, Plan, fixed_runs
from kafka_messages.source import Source


def write_writer(source: Source, plan: Plan, struct: Struct, *, is_array: bool) -> None:
    has_records = plan.has_records(struct)
    parameters = ["out: bytearray"]
    if has_records:
        parameters.append("chunks: list[Buffer]")
        source.use("Buffer")
    parameters.append(f"items: list[{struct.name}]" if is_array else f"item: {struct.name}")
    if plan.needs_version(struct, writing=True):
        parameters.append("version: int")
    name = plan.function("write", struct.name, is_array=is_array)
    source.line()
    source.line()
    source.wrapped(f"def {name}(", parameters, f") -> {'bytearray' if has_records else 'None'}:")
    with source.block_body():
        if is_array:
            with source.block("for item in items:"):
                _write_fields(source, plan, struct)
        else:
            _write_fields(source, plan, struct)
        if has_records:
            source.line("return out")


def _write_fields(source: Source, plan: Plan, struct: Struct) -> None:
    groups = plan.groups(struct)
    for condition, fields in groups:
        if not condition:
            _write_group(source, plan, struct, fields)
            continue
        with source.block(f"if {condition}:"):
            _write_group(source, plan, struct, fields)
    if plan.flavour.flexible:
        _write_tagged_fields(source, plan, struct)
    elif not groups:
        source.line("pass")


def _write_group(source: Source, plan: Plan, struct: Struct, fields: Sequence[Field]) -> None:
    for run in fixed_runs(fields):
        if is_fixed(run[0]):
            _write_run(source, run, "out")
        else:
            _write_field(source, plan, struct, run[0], "out")


def _write_run(source: Source, run: Sequence[Field], out: str) -> None:
    values = [f"item.{field.name}" + (".bytes" if field.type == "uuid" else "") for field in run]
    source.wrapped(f"{out} += {source.packer(run)}(", values, ")")


def _write_field(source: Source, plan: Plan, struct: Struct, field: Field, out: str) -> None:
    value = f"item.{field.name}"
    nullability = plan.nullability(field)
    if field.is_nullable and nullability is not Nullability.ALWAYS:
        only_in = "" if nullability is Nullability.NEVER else f" and {plan.not_null_condition(field)}"
        with source.block(f"if {value} is None{only_in}:"):
            source.line(f'raise {source.use("null_not_encodable")}("{struct.name}.{field.name}", version)')
    compact = "compact_" if plan.flavour.flexible else ""
    nullable = "" if nullability is Nullability.NEVER else "nullable_"
    if field.is_array:
        source.line(f"{source.use(f'write_{compact}{nullable}count')}({out}, {value})")
        _write_present(source, bool(nullable), value, _elements_statement(source, plan, field, out))
    elif field.is_struct:
        statement = _struct_statement(plan, field, out)
        if nullable:
            with source.block(f"if {value} is None:"):
                source.line(f'{out} += b"\\xff"')
            with source.block("else:"):
                source.line(f'{out} += b"\\x01"')
                source.line(statement)
        else:
            source.line(statement)
    elif field.type == "records":
        function = source.use(f"write_{compact}nullable_records")
        source.line(f"{out} = {function}({out}, chunks, {value})")
    else:
        source.line(f"{source.use(f'write_{compact}{nullable}{field.type}')}({out}, {value})")


def _write_present(source: Source, nullable: bool, value: str, statement: str) -> None:
    if not nullable:
        source.line(statement)
        return
    with source.block(f"if {value} is not None:"):
        source.line(statement)


def _elements_statement(source: Source, plan: Plan, field: Field, out: str) -> str:
    if field.is_struct:
        return _struct_statement(plan, field, out)
    compact = "compact_" if plan.flavour.flexible and field.type not in FIXED else ""
    return f"{source.use(f'write_{compact}{field.type}s')}({out}, item.{field.name})"


def _struct_statement(plan: Plan, field: Field, out: str) -> str:
    struct = plan.structs[field.type]
    function = plan.function("write", field.type, is_array=field.is_array)
    version = ", version" if plan.needs_version(struct, writing=True) else ""
    if plan.has_records(struct):
        return f"{out} = {function}({out}, chunks, item.{field.name}{version})"
    return f"{function}({out}, item.{field.name}{version})"


def _write_tagged_fields(source: Source, plan: Plan, struct: Struct) -> None:
    known = plan.flavour.tagged_fields(struct)
    if not known:
        source.line("out.append(0)")
        return
    source.line("tagged: list[tuple[int, bytearray]] = []")
    for field in known:
        condition = plan.flavour.condition(struct, field)
        guard = f"{condition} and " if condition else ""
        with source.block(f"if {guard}{_differs_from_default(field)}:"):
            source.line("tagged_out = bytearray()")
            if is_fixed(field):
                _write_run(source, [field], "tagged_out")
            else:
                _write_field(source, plan, struct, field, "tagged_out")
            source.line(f"tagged.append(({field.tag}, tagged_out))")
    with source.block("if tagged:"):
        source.line(f"{source.use('write_tagged_fields')}(out, tagged)")
    with source.block("else:"):
        source.line("out.append(0)")


def _differs_from_default(field: Field) -> str:
    value = f"item.{field.name}"
    default = default_expression(field)
    if default == "None":
        return f"{value} is not None"
    if default in ("[]", '""', "False"):
        return value
    return f"{value} != {default}"
