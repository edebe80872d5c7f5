"""What was chosen of a repository for a question."""

from lamella.holdings import CodeFile, CodeSelection


def view_selection(selection: CodeSelection, *, explain: bool = False) -> dict[str, object]:
    """What was chosen with its content, and what is left out; why each score is what it is, where that is wanted."""
    return {
        "lamella": 1,
        "root": selection.root,
        "question": selection.question,
        "budget": selection.budget,
        "tokens": selection.tokens,
        "files": [_view_file(one, explain=explain) for one in selection.files],
        "left_out": [{"path": path, "reason": why} for path, why in selection.left_out],
        "text": selection.text,
        "told": list(selection.told),
    }


def _view_file(one: CodeFile, *, explain: bool) -> dict[str, object]:
    body: dict[str, object] = {
        "path": one.path,
        "form": one.form.value,
        "tokens": one.tokens,
        "score": one.score,
        "text": one.text,
    }
    return {**body, "parts": dict(one.parts)} if explain else body
