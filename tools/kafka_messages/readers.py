"""Writes the functions that read structs."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_messages.definitions import Field, Struct
from kafka_messages.layout import FIXED, default_expression, element_size, is_fixed, local_name, python_type
from kafka_messages.plan import Nullability, Plan, fixed_runs
from kafka_messages.source import Source


def write_reader(source: Source, plan: Plan, struct: Struct, *, is_array: bool) -> None:
    parameters = ["buf: memoryview", "pos: int", "end: int"]
    if is_array:
        parameters.append("count: int")
    if plan.needs_version(struct, writing=False):
        parameters.append("version: int")
    result = f"list[{struct.name}]" if is_array else struct.name
    name = plan.function("read", struct.name, is_array=is_array)
    source.line()
    source.line()
    source.wrapped(f"def {name}(", parameters, f") -> tuple[{result}, int]:")
    with source.block_body():
        if not is_array:
            _read_fields(source, plan, struct)
            _construct(source, plan, struct, "item = ", "")
            source.line("return item, pos")
            return
        source.line(f"items: list[{struct.name}] = []")
        with source.block("for _ in range(count):"):
            _read_fields(source, plan, struct)
            _construct(source, plan, struct, "items.append(", ")")
        source.line("return items, pos")


def _construct(source: Source, plan: Plan, struct: Struct, before: str, after: str) -> None:
    fields = [field for field in struct.fields if field.versions & plan.flavour.versions]
    source.call(before, struct.name, [f"{field.name}={local_name(field)}" for field in fields], after)


def _read_fields(source: Source, plan: Plan, struct: Struct) -> None:
    for condition, fields in plan.groups(struct):
        for field in fields:
            if _needs_annotation(plan, field, conditional=bool(condition)):
                source.line(f"{local_name(field)}: {python_type(field)}")
        if not condition:
            _read_group(source, plan, struct, fields)
            continue
        with source.block(f"if {condition}:"):
            _read_group(source, plan, struct, fields)
        with source.block("else:"):
            for field in fields:
                source.line(f"{local_name(field)} = {default_expression(field)}")
    if plan.flavour.flexible:
        _read_tagged_fields(source, plan, struct)


def _needs_annotation(plan: Plan, field: Field, *, conditional: bool) -> bool:
    """Where the first assignment alone would give mypy a type that is too narrow."""
    if field.type in ("bytes", "records") and not field.is_array:
        return conditional
    if not field.is_nullable:
        return False
    if field.is_array or field.is_struct:
        return True
    return plan.nullability(field) is Nullability.NEVER and conditional


def _read_group(source: Source, plan: Plan, struct: Struct, fields: Sequence[Field]) -> None:
    for run in fixed_runs(fields):
        if is_fixed(run[0]):
            _read_run(source, run)
        else:
            _read_field(source, plan, struct, run[0])


def _read_run(source: Source, run: Sequence[Field]) -> None:
    names = [f"raw_{field.name}" if field.type == "uuid" else local_name(field) for field in run]
    unpack = source.unpacker(run)
    if len(run) == 1:
        source.line(f"({names[0]},) = {unpack}(buf, pos)")
    else:
        source.assignment(names, f"{unpack}(buf, pos)")
    source.line(f"pos += {sum(FIXED[field.type][2] for field in run)}")
    for field, name in zip(run, names, strict=True):
        if field.type == "uuid":
            source.line(f"{local_name(field)} = {source.use('uuid_from_bytes')}({name})")


def _read_field(source: Source, plan: Plan, struct: Struct, field: Field) -> None:
    name = local_name(field)
    nullability = plan.nullability(field)
    if field.is_array:
        _read_array(source, plan, field)
    elif field.is_struct:
        _read_single_struct(source, plan, field)
    else:
        kind = "bytes" if field.type == "records" else field.type
        compact = "compact_" if plan.flavour.flexible else ""
        nullable = "" if nullability is Nullability.NEVER else "nullable_"
        source.line(f"{name}, pos = {source.use(f'read_{compact}{nullable}{kind}')}(buf, pos, end)")
    if nullability is Nullability.IN_SOME_VERSIONS:
        with source.block(f"if {name} is None and {plan.not_null_condition(field)}:"):
            source.line(f'raise {source.use("null_refused")}("{struct.name}.{field.name}", version)')


def _read_array(source: Source, plan: Plan, field: Field) -> None:
    name = local_name(field)
    compact = "compact_" if plan.flavour.flexible else ""
    nullable = "" if plan.nullability(field) is Nullability.NEVER else "nullable_"
    size = element_size(plan.structs, field, plan.flavour)
    source.line(f"length, pos = {source.use(f'read_{compact}{nullable}count')}(buf, pos, end, {size})")
    if field.is_struct:
        function = plan.function("read", field.type, is_array=True)
        version = ", version" if plan.needs_version(plan.structs[field.type], writing=False) else ""
        call = f"{function}(buf, pos, end, length{version})"
    elif field.type in FIXED:
        call = f"{source.use(f'read_{field.type}s')}(buf, pos, length)"
    else:
        call = f"{source.use(f'read_{compact}{field.type}s')}(buf, pos, end, length)"
    if not nullable:
        source.line(f"{name}, pos = {call}")
        return
    with source.block("if length < 0:"):
        source.line(f"{name} = None")
    with source.block("else:"):
        source.line(f"{name}, pos = {call}")


def _read_single_struct(source: Source, plan: Plan, field: Field) -> None:
    name = local_name(field)
    version = ", version" if plan.needs_version(plan.structs[field.type], writing=False) else ""
    call = f"{name}, pos = {plan.function('read', field.type, is_array=False)}(buf, pos, end{version})"
    if plan.nullability(field) is Nullability.NEVER:
        source.line(call)
        return
    source.line(f"present, pos = {source.use('read_presence')}(buf, pos)")
    with source.block("if present:"):
        source.line(call)
    with source.block("else:"):
        source.line(f"{name} = None")


def _read_tagged_fields(source: Source, plan: Plan, struct: Struct) -> None:
    known = plan.flavour.tagged_fields(struct)
    if not known:
        # Nearly always empty: one byte looked at, no call.
        source.line(f"pos = pos + 1 if buf[pos] == 0 else {source.use('skip_tagged_fields')}(buf, pos, end)")
        return
    for field in known:
        source.line(f"{local_name(field)}: {python_type(field)} = {default_expression(field)}")
    source.line(f"tag_count, pos = {source.use('read_uvarint')}(buf, pos)")
    with source.block("for _ in range(tag_count):"):
        source.line(f"tag, pos, stop = {source.use('read_tag')}(buf, pos, end)")
        for index, field in enumerate(known):
            condition = plan.flavour.condition(struct, field)
            guard = f" and {condition}" if condition else ""
            with source.block(f"{'elif' if index else 'if'} tag == {field.tag}{guard}:"):
                if is_fixed(field):
                    _read_run(source, [field])
                else:
                    _read_field(source, plan, struct, field)
        with source.block("else:"):
            source.line("pos = stop")
        with source.block("if pos != stop:"):
            source.line(f'raise {source.use("tag_size_refused")}("{struct.name}", tag)')
