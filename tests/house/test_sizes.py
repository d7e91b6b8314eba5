"""Files, functions and parameter lists stay small."""

from statistics import median

from tests.house.sources import PRODUCT, Function, Source, length_lines, parameter_count, parse, sources

_FILE_LINES, _TEST_FILE_LINES = 400, 800
_FUNCTION_LINES, _MEDIAN_FUNCTION_LINES = 50, 8
_PARAMETERS = 6


def too_long_files(files: tuple[Source, ...]) -> list[str]:
    return [
        f"{file.name}: {file.line_count} lines"
        for file in files
        if file.line_count > (_TEST_FILE_LINES if file.is_test else _FILE_LINES)
    ]


def too_large_functions(files: tuple[Source, ...]) -> list[str]:
    return [
        f"{file.at(function)} {function.name}: {length_lines(function)} lines, {parameter_count(function)} parameters"
        for file in files
        for function in file.functions()
        if length_lines(function) > _FUNCTION_LINES or _has_too_many_parameters(function, file)
    ]


def _has_too_many_parameters(function: Function, file: Source) -> bool:
    # pytest hands a test its fixtures as parameters
    return not file.is_test and parameter_count(function) > _PARAMETERS


def test_files_are_short():
    assert too_long_files(sources()) == []


def test_functions_are_small():
    assert too_large_functions(sources()) == []


def test_the_median_function_is_short():
    lengths = [length_lines(function) for file in sources(*PRODUCT) for function in file.functions()]
    assert median(lengths) <= _MEDIAN_FUNCTION_LINES


def test_the_checks_bite():
    body = "\n".join(f"    x{number} = {number}" for number in range(_FUNCTION_LINES))
    assert too_large_functions((parse("backend/a.py", f"def f():\n{body}\n"),))
    assert not too_large_functions((parse("backend/a.py", f"def f():\n{body[: body.rindex(chr(10))]}\n"),))
    assert too_large_functions((parse("backend/a.py", "def f(self, a, b, c, d, e, *, f, g): ..."),))
    assert not too_large_functions((parse("backend/a.py", "def f(self, a, b, c, d, e, *, f): ..."),))
    assert too_long_files((parse("backend/a.py", "x = 1\n" * (_FILE_LINES + 1)),))
    assert not too_long_files((parse("tests/a.py", "x = 1\n" * (_FILE_LINES + 1)),))
