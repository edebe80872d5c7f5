"""Vaults to search: the real one beside the checkout if it is there, and made ones, the same in every run."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

REAL = Path(__file__).parents[2] / "shared" / "data" / "vault"
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$")
_DECORATION = re.compile(r"\{#.*?\}|\{\{.*?\}\}|[`*]|\]\([^)]*\)|\[")
_WORD = re.compile(r"[^\W_]+")
_FEWEST_WORDS = 2

_SUBJECTS = (
    *(
        "garden",
        "kettle",
        "bridge",
        "ledger",
        "harbour",
        "engine",
        "orchard",
        "violin",
        "lantern",
        "compass",
        "archive",
    ),
    *("turbine", "glacier", "museum", "pigeon", "theatre", "factory", "vineyard", "telescope", "locomotive", "library"),
    *(
        "bakery",
        "reservoir",
        "lighthouse",
        "observatory",
        "workshop",
        "railway",
        "canal",
        "monastery",
        "quarry",
        "ferry",
    ),
    *(
        "printer",
        "satellite",
        "aquarium",
        "granary",
        "foundry",
        "nursery",
        "tannery",
        "windmill",
        "aqueduct",
        "citadel",
    ),
)
_ACTS = (
    *("repair", "measure", "paint", "inspect", "deliver", "insure", "translate", "photograph", "catalogue", "restore"),
    *("connect", "protect", "heat", "finance", "schedule", "document", "transport", "compare", "replace", "publish"),
)
_MANNERS = ("winter", "night", "public", "private", "regional", "emergency", "seasonal", "remote", "manual", "shared")
_FILLER = (
    *("people", "usually", "agree", "before", "anything", "happens", "because", "later", "changes", "take", "longer"),
    *(
        "and",
        "the",
        "first",
        "draft",
        "goes",
        "round",
        "once",
        "more",
        "while",
        "others",
        "wait",
        "for",
        "an",
        "answer",
    ),
)
# One text each, so that people can read it.
_JAPANESE = """
天気 会議 資料 東京 電車 予定 計画 報告 連絡 相談 研究 開発 設計 試験 品質 管理 顧客 契約 予算 費用
売上 市場 調査 分析 結果 問題 原因 対策 改善 効率 時間 場所 部屋 机 椅子 電話 手紙 写真 映画 音楽
料理 野菜 果物 朝食 夕食 旅行 空港 飛行機 切符 宿泊 温泉 公園 桜 紅葉 台風 地震 避難 病院 医者 薬
健康 運動 散歩 水泳 野球 試合 選手 学校 先生 学生 宿題 図書館 辞書 言語 翻訳 歴史 文化 伝統 祭り 神社
寺院 美術館 絵画 彫刻 陶器 着物 庭園 建築 道路 橋 川 海岸 山頂 森林 動物 植物 季節 春 夏 秋
冬
"""
_CHINESE = """
天气 会议 资料 北京 火车 计划 安排 报告 联系 讨论 研究 开发 设计 测试 质量 管理 客户 合同 预算 费用
销售 市场 调查 分析 结果 问题 原因 措施 改进 效率 时间 地点 房间 桌子 椅子 电话 书信 照片 电影 音乐
烹饪 蔬菜 水果 早餐 晚餐 旅行 机场 飞机 车票 住宿 温泉 公园 樱花 红叶 台风 地震 避难 医院 医生 药品
健康 运动 散步 游泳 足球 比赛 球员 学校 老师 学生 作业 图书馆 词典 语言 翻译 历史 文化 传统 节日 寺庙
教堂 美术馆 绘画 雕塑 陶瓷 服装 花园 建筑 道路 桥梁 河流 海岸 山顶 森林 动物 植物 季节 春天 夏天
"""
_JOINTS = {
    "ja": ("は", "の", "を", "に", "と", "が", "で", "も"),
    "zh": ("的", "和", "在", "了", "是", "与", "把", "对"),
}


def read_vault() -> Mapping[str, str]:
    """Notes by their paths: those of the real vault, else some that are made."""
    if not REAL.is_dir():
        return dict(_make_notes(150))
    return {path.relative_to(REAL).as_posix(): path.read_text("utf-8") for path in sorted(REAL.rglob("*.md"))}


def write_vault(folder: Path, notes: Mapping[str, str]) -> Path:
    """A folder with these notes."""
    for path, text in notes.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    return folder


def take_headings(notes: Mapping[str, str]) -> tuple[Mapping[str, str], list[tuple[str, str]]]:
    """The notes without their headings, and each heading of several words that one note alone has, with that note."""
    bare, owners = {}, dict[str, set[str]]()
    for path, text in notes.items():
        kept = []
        for line, heading in _read_lines(text):
            if heading is None:
                kept.append(line)
            else:
                owners.setdefault(_DECORATION.sub("", heading).strip().lower(), set()).add(path)
        bare[path] = "\n".join(kept)
    own = [(heading, min(paths)) for heading, paths in sorted(owners.items()) if len(paths) == 1]
    return bare, [(heading, path) for heading, path in own if len(_WORD.findall(heading)) >= _FEWEST_WORDS]


def split_questions(questions: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """One half to choose weights by, and the other, which is reported."""
    mixed = list(questions)
    Random(12).shuffle(mixed)
    return mixed[::2], mixed[1::2]


def inflect(question: str) -> str:
    """A question with another form of each of its words."""
    return " ".join(map(_inflect_word, _WORD.findall(question)))


def _inflect_word(word: str) -> str:
    endings = {"ing": "ed", "ies": "y", "ed": "ing", "ss": "sses", "s": "", "e": "ing", "y": "ies"}
    if len(word) <= len("word") - 1 or not word.isalpha():
        return word
    ending = next((one for one in endings if word.endswith(one) and len(word) > len(one) + 2), "")
    return word.removesuffix(ending) + endings[ending] if ending else f"{word}s"


def make_wide_notes(language: str, count: int = 60) -> Mapping[str, str]:
    """Notes in Japanese or Chinese: each about some of the language's words, with others among them."""
    words, joints = (_JAPANESE if language == "ja" else _CHINESE).split(), _JOINTS[language]
    notes = {}
    for number in range(count):
        random = Random(f"{language} {number}")
        topic = random.sample(words, 12)
        sentences = (
            "".join(
                f"{random.choice(topic if random.random() < 0.8 else words)}{random.choice(joints)}" for _ in range(7)
            )
            for _ in range(25)
        )
        notes[f"{language}/{number:03}.md"] = "。\n".join(sentences)
    return notes


def pick_substrings(notes: Mapping[str, str], count: int = 150) -> list[tuple[str, str]]:
    """Two characters that follow each other in a note, and the note, at places that are drawn."""
    random = Random(3)
    places = [(path, at) for path, text in notes.items() for at in range(len(text) - 1)]
    drawn = ((path, notes[path][at : at + 2]) for path, at in random.sample(places, count * 3))
    return [(pair, path) for path, pair in drawn if pair.isalpha()][:count]


def make_many(notes: Mapping[str, str], count: int) -> Iterator[tuple[str, str]]:
    """So many notes, each of some paragraphs of the given ones below a heading of its own."""
    paragraphs = [
        one for text in notes.values() for one in text.split("\n\n") if len(one) > 80 and not one.startswith("#")
    ]
    headings = [heading for _, heading in take_headings(notes)[1]] or ["notes"]
    for number in range(count):
        random = Random(number)
        body = "\n\n".join(random.choices(paragraphs, k=6))
        yield f"{number % 97:02}/{number:05}.md", f"# {random.choice(headings)} {number}\n\n{body}\n"


def _read_lines(text: str) -> Iterator[tuple[str, str | None]]:
    """Each line, and its heading if it is one outside of code."""
    is_code = False
    for line in text.split("\n"):
        is_code ^= line.lstrip().startswith("```")
        match = None if is_code else _HEADING.match(line)
        yield line, match[1] if match else None


def _make_notes(count: int) -> Iterator[tuple[str, str]]:
    """Notes whose sections say in other forms, among words of other sections, what their headings say."""
    for number in range(count):
        random = Random(number)
        subjects = random.sample(_SUBJECTS, 2)
        parts = [f"---\ntitle: {subjects[0]} {number}\n---\n"]
        for _ in range(8):
            manner, subject, act = random.choice(_MANNERS), random.choice(subjects), random.choice(_ACTS)
            stem = act.removesuffix("e")
            said = random.sample([f"{stem}ed", f"{stem}ing", f"{subject}s", f"the {subject}", manner, act], 4)
            words = [*random.choices(_FILLER, k=110), *random.choices(_SUBJECTS, k=3), random.choice(_ACTS), *said]
            random.shuffle(words)
            parts.append(f"## {stem}ing the {manner} {subject} for the first of them\n\n{' '.join(words)}.\n")
        yield f"made/{number:03}.md", "\n".join(parts)
